import { styleText } from 'node:util';
import { systemClock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import { isDumb } from './colour.ts';
import type { CliIo } from '../io.ts';
import { truncateToWidth } from './styled-text.ts';
import { StatusLine } from './status-line.ts';
import { Wrapper, wrap } from './wrap.ts';

export type Style = 'dim' | 'bold' | 'green' | 'red' | 'yellow' | 'cyan';
export type Paint = (style: Style, text: string) => string;

export interface ScreenOptions {
  out: (text: string) => void;
  colour: boolean;
  /** Columns of the terminal. Absent for a pipe or a file, where lines are not wrapped and nothing is streamed. */
  columns?: () => number;
  /** Redacts secrets before lines are broken; a broken secret would not be recognised. */
  redact?: (text: string) => string;
  status?: StatusLine;
}

/** What a transcript needs of a screen. */
export type TranscriptScreen = Pick<
  Screen,
  'paint' | 'isLive' | 'line' | 'cutLine' | 'beginText' | 'addText' | 'endText' | 'showStatus'
>;

/** Writes lines, streamed text and a status line so that they do not disturb each other. */
export class Screen {
  readonly paint: Paint;
  readonly #options: ScreenOptions;
  /** The streamed text that has no line end yet. */
  #open: Wrapper | undefined;
  #held: string[] | undefined;
  /** Lines beside the streamed text, until its end. */
  #beside: (() => void)[] = [];

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.paint = (style, text) => (options.colour ? styleText(style, text, { validateStream: false }) : text);
  }

  /** Is the output a terminal, which shows text while it arrives? */
  get isLive(): boolean {
    return this.#options.columns !== undefined;
  }

  /** Writes a line, which may contain line breaks; continuation lines are indented. */
  line(text: string, indent = 0): void {
    this.endText();
    this.#write(`${wrap(this.#redact(text), this.#options.columns?.(), indent)}\n`);
  }

  /** Writes exactly one line: text that does not fit is cut. `prefix` and `text` have no colour sequences. */
  cutLine(prefix: string, text: string, style: Style): void {
    this.endText();
    const full = this.#redact(`${prefix}${text}`);
    const columns = this.#options.columns?.();
    this.#write(`${this.paint(style, columns === undefined ? full : truncateToWidth(full, columns))}\n`);
  }

  /** Starts streamed text with a heading. */
  beginText(heading: string, indent: number): void {
    this.endText();
    this.#open = new Wrapper(this.#options.columns?.() ?? Number.POSITIVE_INFINITY, indent);
    this.#write(this.#open.add(heading));
  }

  /** Adds untrusted text to the streamed text: whole words, line breaks and spaces. */
  addText(text: string): void {
    const wrapper = this.#open;
    if (wrapper === undefined || text === '') return;
    const [first = '', ...others] = this.#redact(text).split('\n');
    let out = wrapper.add(escape(first));
    for (const line of others) out += wrapper.lineBreak() + wrapper.add(escape(line));
    this.#write(out);
  }

  endText(): void {
    if (this.#open === undefined) return;
    this.#open = undefined;
    this.#write('\n');
    const beside = this.#beside;
    this.#beside = [];
    for (const write of beside) write();
  }

  /** Writes lines now, or after the streamed text, which they do not interrupt. */
  besideText(write: () => void): void {
    if (this.#open === undefined) write();
    else this.#beside.push(write);
  }

  /** Keeps further output until `release`, while the user answers a question. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const text of held) this.#write(text);
  }

  /** Shows what runs, on a terminal while no streamed text is open. */
  showStatus(label: string | undefined): void {
    if (label === undefined || this.#open !== undefined || this.#held !== undefined) this.#options.status?.hide();
    else this.#options.status?.show(label);
  }

  #write(text: string): void {
    if (this.#held !== undefined) {
      this.#held.push(text);
      return;
    }
    this.#options.status?.erase();
    this.#options.out(text);
  }

  #redact(text: string): string {
    return this.#options.redact?.(text) ?? text;
  }
}

function escape(line: string): string {
  return printable(line, 100_000);
}

/** The screen of a command, without a status line. */
export function screenOf(io: CliIo, redact?: (text: string) => string): Screen {
  return new Screen(screenOptions(io, redact));
}

/** The screen of a command that shows on a terminal what runs. */
export function statusScreenOf(io: CliIo, redact: (text: string) => string): Screen {
  const options = screenOptions(io, redact);
  if (options.columns === undefined || isDumb(io.environment)) return new Screen(options);
  const status = new StatusLine({
    out: options.out,
    columns: options.columns,
    clock: systemClock,
    every: everyInterval,
  });
  return new Screen({ ...options, status });
}

function screenOptions(io: CliIo, redact: ((text: string) => string) | undefined): ScreenOptions {
  const { columns } = io;
  return {
    out: (text) => io.out(text),
    colour: io.colour,
    ...(io.terminal && columns !== undefined ? { columns } : {}),
    ...(redact === undefined ? {} : { redact }),
  };
}

function everyInterval(milliseconds: number, tick: () => void): () => void {
  const timer = setInterval(tick, milliseconds).unref();
  return () => clearInterval(timer);
}
