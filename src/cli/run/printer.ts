import { systemClock } from '../../lib/clock.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { EventSource, TeamEvents } from '../../standalone/team/team-events.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { type Screen, statusScreenOf } from '../transcript/screen.ts';
import { withValue } from '../transcript/structured-reply.ts';
import { LinesBeside } from '../transcript/lines-beside.ts';
import { Transcript } from '../transcript/transcript.ts';
import { WordStream } from '../transcript/word-stream.ts';
import { type ModelUsage, usageLine, usageObject } from './model-usage.ts';

/** Prints what happens in a run. */
export interface Printer {
  /** The calls of a tool that the agents of this run make now, with their arguments; none for JSON lines. */
  runningCalls(tool: string): Json[];
  readonly screen?: Screen;
  readonly show: TeamEvents;
  /** The usage so far, as one line. */
  usage(): string;
  /** Prints the summary. Nothing is printed after it. */
  end(): void;
}

export interface PrinterOptions {
  /** The agent and the session of the user; the session is empty in a run without a user. */
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
  const usageNow = (): JsonObject => usageObject(counts, options.usage, options.isReplayed);
  const print = options.form === 'json' ? jsonPrinter(options, usageNow, io) : textPrinter(options, usage, io);
  let isEnded = false;
  return {
    ...print,
    usage,
    show(event, source) {
      if (isEnded) return;
      // Also reported for a message that failed or was interrupted.
      if (event.type === 'session-end') {
        counts.turns += event.turns;
        counts.toolCalls += event.toolCalls;
      }
      print.show(event, source);
    },
    end() {
      if (isEnded) return;
      print.end();
      isEnded = true;
    },
  };
}

type Form = Pick<Printer, 'runningCalls' | 'screen' | 'show' | 'end'>;

/**
 * Prints events as JSON lines with time, agent and session; those of the background with the session that their agent used last. Deltas are
 * regrouped into words, so that redaction finds whole secrets. A message of the user ends with the usage of the run so far.
 */
function jsonPrinter({ agent: user, session }: PrinterOptions, usage: () => JsonObject, io: CliIo): Form {
  const words = new Map<string, WordStream>();
  const latest = new Map<string, string>();
  return {
    show(event, { name: agent, session: of }) {
      const own = of ?? latest.get(agent) ?? session;
      latest.set(agent, own);
      const key = `${agent} ${own}`;
      const stream = words.get(key) ?? new WordStream();
      words.set(key, stream);
      const write = (shown: AgentEvent): void =>
        writeJsonLine(io, { time: systemClock.now().toISOString(), agent, session: own, ...shown });
      const writeText = (text: string): void => {
        if (text !== '') write({ type: 'message', text, delta: true });
      };
      if (event.type === 'message' && event.delta) return writeText(stream.push(event.text));
      writeText(stream.flush());
      if (event.type !== 'session-end') return write(event);
      const isOfUser = agent === user && own === session && session !== '';
      write({ ...withValue(event, event.reply), ...(isOfUser ? { runUsage: usage() } : {}) });
      words.delete(key);
    },
    runningCalls: () => [],
    end: () => undefined,
  };
}

/** The agent of the user speaks while it thinks; what other agents do appears beside it, in whole lines. */
function textPrinter({ agent, session, hidesMessages, redact }: PrinterOptions, usage: () => string, io: CliIo): Form {
  const screen = statusScreenOf(io, redact);
  const own = new Transcript(agent, screen);
  const others = new Map<string, Transcript>();
  const transcriptOf = (source: EventSource): Transcript => {
    const isOwn = source.name === agent && (source.session === undefined || source.session === session);
    if (isOwn) return own;
    const key = `${source.name} ${source.session ?? ''}`;
    const found = others.get(key) ?? new Transcript(source.name, new LinesBeside(screen));
    others.set(key, found);
    return found;
  };
  let isFirst = true;
  return {
    screen,
    runningCalls: (tool) => [own, ...others.values()].flatMap((transcript) => transcript.runningCalls(tool)),
    show(event, source) {
      const transcript = transcriptOf(source);
      if (hidesMessages && transcript === own && event.type === 'message-received') return;
      transcript.show(event);
      if (event.type !== 'session-start' || !isFirst || session === '') return;
      isFirst = false;
      screen.line(screen.paint('dim', `Session ${session}`));
    },
    end() {
      screen.showStatus(undefined);
      screen.line(screen.paint('dim', usage()));
    },
  };
}
