import { systemClock } from '../../lib/clock.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { type Screen, statusScreenOf } from '../transcript/screen.ts';
import { withValue } from '../transcript/structured-reply.ts';
import { Transcript } from '../transcript/transcript.ts';
import { WordStream } from '../transcript/word-stream.ts';
import { type ModelUsage, usageLine } from './model-usage.ts';

/** Prints what happens in a run. */
export interface Printer {
  /** The text form, for a conversation at a terminal; absent for JSON lines. */
  readonly transcript?: Transcript;
  readonly screen?: Screen;
  show(event: AgentEvent): void;
  /** The usage so far, as one line. */
  usage(): string;
  /** Prints the summary. Nothing is printed after it. */
  end(): void;
}

export interface PrinterOptions {
  agent: string;
  session: string;
  form: 'text' | 'json';
  usage: ModelUsage;
  isReplayed: boolean;
  /** The terminal already shows the messages that the user types. */
  hidesMessages: boolean;
  redact: (text: string) => string;
}

export function createPrinter(options: PrinterOptions, io: CliIo): Printer {
  const counts = { turns: 0, toolCalls: 0 };
  const usage = (): string => usageLine(counts, options.usage, options.isReplayed);
  const print = options.form === 'json' ? jsonPrinter(options, io) : textPrinter(options, usage, io);
  let isEnded = false;
  return {
    ...print,
    usage,
    show(event) {
      if (isEnded) return;
      // Also reported for a message that failed or was interrupted.
      if (event.type === 'session-end') {
        counts.turns += event.turns;
        counts.toolCalls += event.toolCalls;
      }
      print.show(event);
    },
    end() {
      if (isEnded) return;
      print.end();
      isEnded = true;
    },
  };
}

type Form = Pick<Printer, 'transcript' | 'screen' | 'show' | 'end'>;

/** Prints events as JSON lines with time, agent and session. Deltas are regrouped into words, so that redaction finds whole secrets. */
function jsonPrinter({ agent, session }: PrinterOptions, io: CliIo): Form {
  const words = new WordStream();
  const write = (event: AgentEvent): void =>
    writeJsonLine(io, { time: systemClock.now().toISOString(), agent, session, ...event });
  const writeText = (text: string): void => {
    if (text !== '') write({ type: 'message', text, delta: true });
  };
  return {
    show(event) {
      if (event.type === 'message' && event.delta) return writeText(words.push(event.text));
      writeText(words.flush());
      write(event.type === 'session-end' ? withValue(event, event.reply) : event);
    },
    end: () => undefined,
  };
}

function textPrinter({ agent, session, hidesMessages, redact }: PrinterOptions, usage: () => string, io: CliIo): Form {
  const screen = statusScreenOf(io, redact);
  const transcript = new Transcript(agent, screen);
  let isFirst = true;
  return {
    screen,
    transcript,
    show(event) {
      if (hidesMessages && event.type === 'message-received') return;
      transcript.show(event);
      if (event.type !== 'session-start' || !isFirst) return;
      isFirst = false;
      screen.line(screen.paint('dim', `Session ${session}`));
    },
    end() {
      screen.showStatus(undefined);
      screen.line(screen.paint('dim', usage()));
    },
  };
}
