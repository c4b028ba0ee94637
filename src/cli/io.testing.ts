import type { CliIo } from './io.ts';

export interface FakeTerminal extends CliIo {
  readonly printed: () => string;
  readonly errors: () => string;
}

/** The process environment of a verb with its standard input; keeps what the verb prints. */
export function aTerminal(input = ''): FakeTerminal {
  const out: string[] = [];
  const error: string[] = [];
  return {
    out: (text) => void out.push(text),
    error: (text) => void error.push(text),
    printed: () => out.join(''),
    errors: () => error.join(''),
    stdin: () => Promise.resolve(input),
    lines: async function* none() {},
    cwd: process.cwd(),
    environment: {},
    colour: false,
    terminal: false,
    signal: new AbortController().signal,
  };
}
