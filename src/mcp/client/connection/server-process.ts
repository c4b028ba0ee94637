import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../../../lib/errors.ts';
import { confinedCommand } from '../../../sandbox/confined/confined-command.ts';
import { filePreload } from '../../../sandbox/confined/file-preload.ts';
import { ProgramHome } from '../../../sandbox/confined/program-home.ts';
import { raiseOomScore } from '../../../sandbox/memory-usage.ts';
import type { LocalServer } from '../read-servers.ts';

const MAX_STDERR = 2_048;

/** The process of one connection to a server. Nothing that it sends is trusted, and it can always be killed. */
export class ServerProcess implements AsyncDisposable {
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;
  readonly #home: ProgramHome;
  #stderr = '';
  #reason: string | undefined;

  private constructor(child: ChildProcess, home: ProgramHome) {
    this.#child = child;
    this.#home = home;
    this.exited = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.#reason ??= `the process exited (${signal ?? `exit code ${code}`})`;
        resolve();
      });
      child.once('error', (error) => {
        this.#reason ??= `the process could not be started: ${messageOf(error, 256)}`;
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

  /** Starts the program in a home of its own, with no variable of the environment of this process. */
  static async start(server: LocalServer): Promise<ServerProcess> {
    const home = await ProgramHome.create();
    const confinement = { home: home.path, read: server.read, write: server.write, preloads: [await filePreload()] };
    const { command, args } = confinedCommand(process.execPath, server, confinement);
    const child = spawn(command, args, {
      cwd: home.workspace,
      env: { ...server.environment, HOME: home.path, TMPDIR: home.path },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    return new ServerProcess(child, home);
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

  /** Why the process has ended; undefined while it runs. */
  get ended(): string | undefined {
    return this.#reason;
  }

  /** The beginning of its standard error: untrusted text. */
  get stderr(): string {
    return this.#stderr;
  }

  kill(reason: string): void {
    this.#reason ??= reason;
    this.#child.kill('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill('the connection is closed');
    await this.exited;
    await this.#home[Symbol.asyncDispose]();
  }
}

function required<T>(stream: T | null): T {
  if (stream === null) throw new TypeError('the server has no pipes');
  return stream;
}
