import { text } from 'node:stream/consumers';
import { CommanderError } from 'commander';
import { isTemperError, messageOf } from '../lib/errors.ts';
import { EXIT, type CliIo } from './io.ts';
import { createProgram } from './program.ts';

/** The process: its streams, signals and exit code. The command line is in `program.ts`. */
async function main(): Promise<number> {
  const interrupt = new AbortController();
  const stop = (): void => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort(new DOMException('interrupted', 'AbortError'));
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  let exitCode: number = EXIT.ok;
  const program = createProgram(processIo(interrupt.signal), (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(process.argv);
    return exitCode;
  } catch (error) {
    return report(error);
  }
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  process.stderr.write(`temper: ${code}: ${messageOf(error)}\n`);
  if (code === 'TEMPER_INTERNAL' && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  return code === 'TEMPER_USAGE' ? EXIT.usage : EXIT.refused;
}

function processIo(signal: AbortSignal): CliIo {
  const terminal = process.stdout.isTTY;
  return {
    out: (text) => process.stdout.write(text),
    error: (text) => process.stderr.write(text),
    stdin: () => text(process.stdin),
    lines: readLines,
    cwd: process.cwd(),
    environment: process.env,
    terminal,
    colour: process.env['NO_COLOR'] === undefined && (terminal || process.env['FORCE_COLOR'] === '1'),
    signal,
  };
}

/** Reads lines from standard input. The prompt is written only on a terminal. */
async function* readLines(prompt: string): AsyncGenerator<string> {
  const { createInterface } = await import('node:readline');
  const terminal = process.stdin.isTTY && process.stdout.isTTY;
  const reader = createInterface({
    input: process.stdin,
    terminal,
    ...(terminal ? { output: process.stdout, prompt } : {}),
  });
  let open = true;
  reader.on('close', () => {
    open = false;
  });
  // While readline reads a terminal, it receives Ctrl-C instead of the process.
  reader.on('SIGINT', () => {
    reader.close();
    process.kill(process.pid, 'SIGINT');
  });
  if (terminal) reader.prompt();
  for await (const line of reader) {
    yield line;
    if (terminal && open) reader.prompt();
  }
}

// A bundle of an image; the sources need no map.
if (import.meta.filename.endsWith('.mjs')) {
  const { installSourceMap } = await import('./stack-traces.ts');
  installSourceMap(import.meta.url);
}
process.exitCode = await main();
