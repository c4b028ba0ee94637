import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import { printableDocument } from '../lib/printable.ts';

/** Reads what a user types at a terminal. */
export interface Prompt {
  /** One line, or several when they were pasted at once; undefined at the end of input or when the signal is aborted. */
  read(question: string, options?: { signal?: AbortSignal; remember?: boolean }): Promise<string | undefined>;
}

export interface PromptOptions {
  /** Earlier inputs, newest first. */
  history: readonly string[];
  /** Receives the inputs to remember, newest first, after each input. */
  onHistory: (history: readonly string[]) => void;
}

/** The process environment of a verb: streams, folder, variables and interrupts. Tests replace it. */
export interface CliIo {
  out(text: string): void;
  error(text: string): void;
  stdin(): Promise<string>;
  /** Lines of standard input, until its end. */
  lines(): AsyncIterable<string>;
  /** Opens a prompt; absent when standard input or output is not a terminal. */
  readonly openPrompt?: (options: PromptOptions) => Promise<Prompt>;
  /** Width of the terminal; absent when standard output is not a terminal. */
  readonly columns?: () => number;
  /** Width of the terminal of standard error; absent when it is not a terminal. */
  readonly errorColumns?: () => number;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Is standard output a terminal that supports colour? */
  readonly colour: boolean;
  readonly terminal: boolean;
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal;
}

/** Exit codes of all verbs; only the roles of a cluster use `defect`. `docs/reference/exit-codes.md` lists them. */
export const EXIT = {
  ok: 0,
  refused: 1,
  usage: 2,
  parked: 3,
  defect: 70,
  hangup: 129,
  interrupted: 130,
  closedPipe: 141,
  terminated: 143,
} as const;

/** The command line names something that cannot be used. All other errors are refusals or failures. */
const USAGE_CODES: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_USAGE',
  'TEMPER_MANIFEST_UNREADABLE',
  'TEMPER_SESSION_INVALID',
  'TEMPER_STATE_NOT_FOUND',
  'TEMPER_STATE_UNUSABLE',
  'TEMPER_STATE_UNTRUSTED',
  'TEMPER_STATE_KEY_UNUSABLE',
] satisfies ErrorCode[]);

export function exitCodeFor(code: ErrorCode): number {
  return USAGE_CODES.has(code) ? EXIT.usage : EXIT.refused;
}

/** The reason of an aborted `CliIo.signal`: what ended the command, as an exit code. */
export class Interrupt extends Error {
  override readonly name = 'AbortError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The exit code of a command that its signal ended; undefined while the signal is not aborted. */
export function interruptExitCode({ aborted, reason }: AbortSignal): number | undefined {
  if (!aborted) return undefined;
  return reason instanceof Interrupt ? reason.exitCode : EXIT.interrupted;
}

/** Prints the value as one line. Control characters and bidirectional marks are escaped, so parsing gives the same value. */
export function writeJsonLine(io: CliIo, value: object | Json): void {
  io.out(`${printableDocument(JSON.stringify(value))}\n`);
}

/** One error on standard error. Its message may repeat untrusted text, which must not control the terminal. */
export function errorLine({ code, message }: { code: string; message: string }): string {
  return printableDocument(`temper: ${code}: ${message}\n`);
}
