import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '../..');
export const QUICKSTART = join(ROOT, 'manifests/quickstart');

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  cwd?: string;
  input?: string;
  /** Leaves standard input open, for the test to write to and to end. */
  keepOpen?: boolean;
  environment?: Record<string, string>;
}

export interface RunningCommand {
  child: ChildProcess;
  /** The stdout so far. */
  printed(): string;
  ended: Promise<CommandResult>;
}

/** The configuration folder of all commands of this process: they share one key, and leave that of the developer alone. */
const CONFIG_HOME = mkdtempSync(join(tmpdir(), 'temper-config-'));
process.on('exit', () => rmSync(CONFIG_HOME, { recursive: true, force: true }));

/** An environment without keys and colours, so that the developer's settings do not affect tests. Compiled code is kept as in `make`. */
export function plainEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE } = process.env;
  const cache = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
  return { PATH, HOME, NO_COLOR: '1', XDG_CONFIG_HOME: CONFIG_HOME, ...cache };
}

export function startTemper(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const child = spawn(join(ROOT, 'bin/temper'), args, {
    cwd: options.cwd ?? ROOT,
    env: { ...plainEnvironment(), ...options.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {
    // The command may exit before it has read all its input.
  });
  if (options.keepOpen !== true) child.stdin.end(options.input ?? '');
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return { child, printed: () => stdout, ended };
}

export function temper(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return startTemper(args, options).ended;
}

/** Creates a temporary folder; disposing removes it. */
export async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'temper-system-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
