import { CommanderError } from 'commander';
import { isTemperError, messageOf } from '../lib/errors.ts';
import { printableDocument } from '../lib/printable.ts';
import { type CliIo, errorLine, EXIT, exitCodeFor, interruptExitCode } from './io.ts';
import { createProgram } from './program.ts';

/** Runs one command line without the name of the program, and returns its exit code. Its error is one line on standard error. */
export async function runCommandLine(words: readonly string[], io: CliIo): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = createProgram(io, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (error) {
    return report(error, io);
  }
}

function report(error: unknown, io: CliIo): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  const interrupted = interruptExitCode(io.signal);
  // After an interrupt, an error only says what the user already knows.
  if (interrupted !== undefined && (code === 'TEMPER_CANCELLED' || error === io.signal.reason)) return interrupted;
  io.error(errorLine({ code, message: messageOf(error) }));
  if (code === 'TEMPER_INTERNAL' && error instanceof Error) io.error(printableDocument(`${error.stack ?? ''}\n`));
  return interrupted ?? exitCodeFor(code);
}
