import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { onAbort } from '../../lib/async/abort.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { OutputText } from './output-text.ts';
import type { ProgramResult } from './port.ts';

/** Bytes that a result has of each stream. */
const MAX_OUTPUT_BYTES = 65_536;
/** A program that writes more is killed. */
const MAX_WRITTEN_BYTES = 67_108_864;
/** Time between the request to end and the kill. */
const GRACE_MS = 2_000;
const MAX_REPORT = 1_024;

export interface ProgramStart {
  command: string;
  args: readonly string[];
  /** The current folder. */
  folder: string;
  /** The whole environment. */
  environment: Readonly<Record<string, string>>;
  input: string | undefined;
  milliseconds: number;
}

/** Runs the launcher with a program to the end of all its processes. Throws TEMPER_PROGRAM_UNAVAILABLE and TEMPER_CANCELLED. */
export async function runProgramProcess(start: ProgramStart, clock: Clock, op: CallOptions): Promise<ProgramResult> {
  const { command, args, folder, environment, input, milliseconds } = start;
  const child = spawn(command, args, {
    cwd: folder,
    env: environment,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const control = child.stdio[3] as Duplex;
  const [stdout, stderr] = [new OutputText(MAX_OUTPUT_BYTES), new OutputText(MAX_OUTPUT_BYTES)];
  let ending: ProgramResult['ended'];
  const kill = (): void => void control.destroy();
  const collect = (output: OutputText) => (chunk: Buffer) => {
    output.add(chunk);
    if (output.bytes <= MAX_WRITTEN_BYTES || ending !== undefined) return;
    ending = 'Output';
    kill();
  };
  child.stdout?.on('data', collect(stdout));
  child.stderr?.on('data', collect(stderr));
  let report = '';
  control.on('data', (chunk: Buffer) => {
    if (report.length < MAX_REPORT) report += chunk.toString('utf8');
  });
  // A program that ends does not read the rest of its input; only its end is reported.
  for (const stream of [control, child.stdin]) stream?.on('error', () => undefined);
  child.stdin?.end(input ?? '');
  let grace: NodeJS.Timeout | undefined;
  const timer = setTimeout(
    () => {
      ending ??= 'Timeout';
      control.write('T');
      grace = setTimeout(kill, GRACE_MS);
    },
    Math.max(1, Math.min(milliseconds, remainingMs(op, clock) - GRACE_MS)),
  );
  using _cancelled = onAbort(op.signal, kill);
  try {
    await ended(child);
  } finally {
    clearTimeout(timer);
    clearTimeout(grace);
    kill();
  }
  if (op.signal.aborted)
    throw new TemperError('TEMPER_CANCELLED', 'the program was ended, because its call was cancelled');
  return { ...resultOf(report, ending), stdout: stdout.result(), stderr: stderr.result() };
}

async function ended(child: ChildProcess): Promise<void> {
  try {
    await once(child, 'close');
  } catch (cause) {
    throw new TemperError('TEMPER_PROGRAM_UNAVAILABLE', 'the launcher of programs cannot be started', { cause });
  }
}

/** What the launcher reported. */
function resultOf(
  report: string,
  ending: ProgramResult['ended'],
): Pick<ProgramResult, 'exitCode' | 'signal' | 'ended' | 'left'> {
  const [line = ''] = report.split('\n', 1);
  const [word = '', first = '', second = ''] = line.split(' ');
  const ended = ending === undefined ? {} : { ended: ending };
  const left = Math.max(0, Number(second) || 0);
  if (word === 'exit') return { exitCode: Number(first), left, ...ended };
  if (word === 'signal') return { signal: signalName(Number(first)), left, ...ended };
  if (word === 'memory') return { signal: 'SIGKILL', ended: 'Memory', left: 0 };
  // The connection was closed, so that the launcher kills everything, before it could report.
  if (line === '' && ending !== undefined) return { signal: 'SIGKILL', left: 0, ...ended };
  const reason = line.startsWith('error ') ? line.slice('error '.length) : 'the launcher ended without a report';
  throw new TemperError(
    'TEMPER_PROGRAM_UNAVAILABLE',
    `the program cannot be confined or started: ${printable(reason, 200)}`,
  );
}

function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`;
}
