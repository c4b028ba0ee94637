import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable, Writable } from 'node:stream';
import { messageOf } from '../../lib/errors.ts';
import { raiseOomScore } from '../memory-usage.ts';
import type { RunnerCommand } from '../runner-command.ts';
import type { ProgramHome } from './program-home.ts';

const MAX_STDERR = 2_048;

export interface PipedProcessOptions {
  /** It belongs to the process from now on. */
  home: ProgramHome;
  /** The current folder of the process. */
  folder: string;
  /** The whole environment. */
  environment: Readonly<Record<string, string>>;
  /** With a pipe at file descriptor 3 beside the standard ones. */
  hasExtraPipe?: boolean;
  /** Why the process ends when it is disposed of. */
  closeReason: string;
}

/** A process with a home of its own. Nothing that it sends is trusted, and it can always be killed. */
export class PipedProcess implements AsyncDisposable {
  readonly exited: Promise<void>;
  protected readonly home: ProgramHome;
  readonly #closeReason: string;
  readonly #child: ChildProcess;
  #stderr = '';
  #reason: string | undefined;

  constructor({ command, args }: RunnerCommand, options: PipedProcessOptions) {
    const { home, folder, environment, hasExtraPipe = false, closeReason } = options;
    const child = spawn(command, args, {
      cwd: folder,
      env: environment,
      stdio: ['pipe', 'pipe', 'pipe', ...(hasExtraPipe ? (['pipe'] as const) : [])],
      detached: true,
    });
    this.home = home;
    this.#closeReason = closeReason;
    this.#child = child;
    this.exited = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.endedBecause(`the process exited (${signal ?? `exit code ${code}`})`);
        resolve();
      });
      child.once('error', (error) => {
        this.endedBecause(`the process could not be started: ${messageOf(error, 256)}`);
        resolve();
      });
    });
    // A write to a process that has just exited fails; only the exit is reported.
    this.stdin.on('error', () => undefined);
    child.stderr?.on('data', (chunk: Buffer) => {
      if (this.#stderr.length < MAX_STDERR) this.#stderr += chunk.toString('utf8').slice(0, MAX_STDERR);
    });
    if (child.pid !== undefined) raiseOomScore(child.pid);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get stdin(): Writable {
    return required(this.#child.stdin);
  }

  get stdout(): Readable {
    return required(this.#child.stdout);
  }

  /** The pipe at file descriptor 3. */
  protected get extraPipe(): Duplex {
    return required(this.#child.stdio[3] as Duplex | null | undefined);
  }

  /** Why the process has ended; undefined while it runs. */
  get ended(): string | undefined {
    return this.#reason;
  }

  /** The beginning of its standard error: untrusted text. */
  get stderr(): string {
    return this.#stderr;
  }

  kill(reason: string): void {
    this.endedBecause(reason);
    this.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill(this.#closeReason);
    await this.exited;
    await this.home[Symbol.asyncDispose]();
  }

  protected stop(): void {
    this.#child.kill('SIGKILL');
  }

  /** The first reason stays. */
  protected endedBecause(reason: string): void {
    this.#reason ??= reason;
  }
}

function required<T>(stream: T | null | undefined): T {
  if (stream === null || stream === undefined) throw new TypeError('the process has no pipes');
  return stream;
}
