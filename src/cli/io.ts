import type { Json } from '../lib/json.ts';

/** The process environment of a verb: streams, folder, variables and interrupts. Tests replace it. */
export interface CliIo {
  out(text: string): void;
  error(text: string): void;
  stdin(): Promise<string>;
  /** Lines typed by the user, each after the prompt, until the end of input. */
  lines(prompt: string): AsyncIterable<string>;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Is standard output a terminal that supports colour? */
  readonly colour: boolean;
  readonly terminal: boolean;
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal;
}

/** Exit codes of all verbs; only the roles of a cluster use `defect`. */
export const EXIT = { ok: 0, refused: 1, usage: 2, defect: 70 } as const;

export function writeJsonLine(io: CliIo, value: object | Json): void {
  io.out(`${JSON.stringify(value)}\n`);
}
