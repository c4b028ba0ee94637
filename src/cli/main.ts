import { buffer } from 'node:stream/consumers';
import { hasErrno, messageOf, TemperError } from '../lib/errors.ts';
import { runCommandLine } from './command-line.ts';
import { type CliIo, errorLine, EXIT, Interrupt } from './io.ts';
import { utf8Text } from './input/input-files.ts';
import { usesColour } from './transcript/colour.ts';

/** The process: its streams, signals and exit code. The command line is in `program.ts`. */
function main(): Promise<number> {
  const interrupt = new AbortController();
  stopOnSignals(interrupt);
  const isClosed = stopOnFailedOutput(interrupt);
  return runCommandLine(process.argv.slice(2), processIo(interrupt.signal, isClosed));
}

/** The first signal ends the command in order; the second ends the process at once. */
function stopOnSignals(interrupt: AbortController): void {
  const codes = { SIGHUP: EXIT.hangup, SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated } as const;
  for (const [name, code] of Object.entries(codes)) {
    process.on(name, () => {
      if (interrupt.signal.aborted) process.exit(code);
      interrupt.abort(new Interrupt(`interrupted by ${name}`, code));
    });
  }
}

/**
 * Ends the command in order when its output cannot be written: the reader has gone, as after `| head -1`, or the disk is full.
 * Further output is dropped. For a reader that has gone, the exit code is that of a program that SIGPIPE ends.
 */
function stopOnFailedOutput(interrupt: AbortController): () => boolean {
  let failed = false;
  process.stdout.on('error', (error) => {
    if (failed) return;
    failed = true;
    const failure = new TemperError(
      'TEMPER_OUTPUT_FAILED',
      `standard output cannot be written: ${messageOf(error, 200)}; free disk space, or write it to another file`,
    );
    const isClosed = hasErrno(error, 'EPIPE');
    if (!isClosed) process.stderr.write(errorLine(failure));
    const code = isClosed ? EXIT.closedPipe : EXIT.refused;
    process.exitCode = code;
    interrupt.abort(new Interrupt(failure.message, code));
  });
  // Nothing can report that standard error failed; the exit code still says how the command ended.
  process.stderr.on('error', () => undefined);
  return () => failed;
}

/** Width of a terminal that reports none. */
const DEFAULT_COLUMNS = 80;

function processIo(signal: AbortSignal, isClosed: () => boolean): CliIo {
  const terminal = process.stdout.isTTY;
  const { env } = process;
  return {
    out: (chunk) => void (isClosed() || process.stdout.write(chunk)),
    error: (chunk) => process.stderr.write(chunk),
    stdin: readStandardInput,
    lines: () => readLines(signal),
    cwd: process.cwd(),
    environment: env,
    terminal,
    colour: usesColour(env, terminal),
    signal,
    ...(terminal ? { columns: () => process.stdout.columns || DEFAULT_COLUMNS } : {}),
    ...(process.stderr.isTTY ? { errorColumns: () => process.stderr.columns || DEFAULT_COLUMNS } : {}),
    ...(terminal && process.stdin.isTTY ? { openPrompt: openTerminalPrompt } : {}),
  };

  async function openTerminalPrompt(options: Parameters<NonNullable<CliIo['openPrompt']>>[0]) {
    const { terminalPrompt } = await import('./prompt/terminal-prompt.ts');
    const { stdin: input, stdout: output } = process;
    return terminalPrompt({ input, output, interrupt: () => process.kill(process.pid, 'SIGINT') }, options);
  }
}

async function readStandardInput(): Promise<string> {
  const bytes = await buffer(process.stdin);
  return utf8Text(
    bytes,
    () => new TemperError('TEMPER_USAGE', 'standard input is not UTF-8 text; convert it to UTF-8'),
  );
}

async function* readLines(signal: AbortSignal): AsyncGenerator<string> {
  const { inputLines } = await import('./input/input-lines.ts');
  yield* inputLines(process.stdin, signal);
}

// A bundle of an image; the sources need no map.
if (import.meta.filename.endsWith('.mjs')) {
  const { installSourceMap } = await import('./stack-traces.ts');
  installSourceMap(import.meta.url);
}
const exitCode = await main();
// A pipe that closed after the last write has set its own exit code.
process.exitCode ??= exitCode;
