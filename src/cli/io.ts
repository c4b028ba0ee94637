import type { Json } from '../lib/json.ts';

/** What a verb may touch of the world around it, so that tests can stand in for a terminal. */
export interface CliIo {
  out(text: string): void;
  error(text: string): void;
  stdin(): Promise<string>;
  /** Lines a person types, each after the prompt, until the end of input. */
  lines(prompt: string): AsyncIterable<string>;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Is standard output a terminal that shows colour? */
  readonly colour: boolean;
  readonly terminal: boolean;
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal;
}

/** Exit codes every verb keeps to; `defect` is of the roles of a cluster alone. */
export const EXIT = { ok: 0, refused: 1, usage: 2, defect: 70 } as const;

export function writeJsonLine(io: CliIo, value: object | Json): void {
  io.out(`${JSON.stringify(value)}\n`);
}
