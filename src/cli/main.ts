import { text } from 'node:stream/consumers';
import { CommanderError } from 'commander';
import { hasErrno, isTemperError, messageOf } from '../lib/errors.ts';
import { EXIT, exitCodeFor, Interrupt, interruptExitCode, type CliIo } from './io.ts';
import { createProgram } from './program.ts';

/** The process: its streams, signals and exit code. The command line is in `program.ts`. */
async function main(): Promise<number> {
  const interrupt = new AbortController();
  stopOnSignals(interrupt);
  const isClosed = stopOnClosedPipe(interrupt);
  let exitCode: number = EXIT.ok;
  const program = createProgram(processIo(interrupt.signal, isClosed), (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(process.argv);
    return exitCode;
  } catch (error) {
    return report(error, interrupt.signal);
  }
}

/** The first signal ends the command in order; the second ends the process at once. */
function stopOnSignals(interrupt: AbortController): void {
  const codes = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated } as const;
  for (const [name, code] of Object.entries(codes)) {
    process.on(name, () => {
      if (interrupt.signal.aborted) process.exit(code);
      interrupt.abort(new Interrupt(`interrupted by ${name}`, code));
    });
  }
}

/**
 * Ends the command in order when the reader of its output has gone, as after `| head -1`. Further output is dropped. The exit code
 * is that of a program that SIGPIPE ends.
 */
function stopOnClosedPipe(interrupt: AbortController): () => boolean {
  let closed = false;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error) => {
      if (!hasErrno(error, 'EPIPE')) throw error;
      if (stream === process.stderr) return;
      closed = true;
      process.exitCode = EXIT.closedPipe;
      interrupt.abort(new Interrupt('the reader of standard output has gone', EXIT.closedPipe));
    });
  }
  return () => closed;
}

function report(error: unknown, signal: AbortSignal): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  const interrupted = interruptExitCode(signal);
  // After an interrupt, an error only says what the user already knows.
  if (interrupted !== undefined && (code === 'TEMPER_CANCELLED' || error === signal.reason)) return interrupted;
  process.stderr.write(`temper: ${code}: ${messageOf(error)}\n`);
  if (code === 'TEMPER_INTERNAL' && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  return interrupted ?? exitCodeFor(code);
}

function processIo(signal: AbortSignal, isClosed: () => boolean): CliIo {
  const terminal = process.stdout.isTTY;
  const { env } = process;
  return {
    out: (chunk) => void (isClosed() || process.stdout.write(chunk)),
    error: (chunk) => process.stderr.write(chunk),
    stdin: () => text(process.stdin),
    lines: () => readLines(signal),
    cwd: process.cwd(),
    environment: env,
    terminal,
    colour: env['NO_COLOR'] === undefined && (terminal || env['FORCE_COLOR'] === '1'),
    signal,
    ...(terminal ? { columns: () => process.stdout.columns } : {}),
    ...(terminal && process.stdin.isTTY ? { openPrompt: openTerminalPrompt } : {}),
  };

  async function openTerminalPrompt(options: Parameters<NonNullable<CliIo['openPrompt']>>[0]) {
    const { terminalPrompt } = await import('./prompt/terminal-prompt.ts');
    const { stdin: input, stdout: output } = process;
    return terminalPrompt({ input, output, interrupt: () => process.kill(process.pid, 'SIGINT') }, options);
  }
}

async function* readLines(signal: AbortSignal): AsyncGenerator<string> {
  const { createInterface } = await import('node:readline');
  yield* createInterface({ input: process.stdin, signal });
}

// A bundle of an image; the sources need no map.
if (import.meta.filename.endsWith('.mjs')) {
  const { installSourceMap } = await import('./stack-traces.ts');
  installSourceMap(import.meta.url);
}
const exitCode = await main();
// A pipe that closed after the last write has set its own exit code.
process.exitCode ??= exitCode;
