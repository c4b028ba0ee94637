import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable, Writable } from 'node:stream';
import { messageOf } from '../../lib/errors.ts';
import { raiseOomScore } from '../../sandbox/memory-usage.ts';
import { confinedCommand } from '../../sandbox/confined/confined-command.ts';
import { ProgramHome } from '../../sandbox/confined/program-home.ts';
import { agentEnvironment, type AgentProgram } from './agent-command.ts';
import { ORIGIN } from './origin.ts';
import type { ProgramHost, ProgramProcess } from './port.ts';
import { preloadTexts } from './preloads.ts';

const MAX_STDERR = 2_048;
/** Two bodies of the largest size that a handler reads, as JSON text. */
const MAX_REQUEST_BYTES = 40 * 1_024 * 1_024;
/** Time in which a process writes what it keeps, and exits. */
const LEAVE_TIMEOUT_MS = 1_000;

/** Starts the processes of the program on this machine. */
export function localPrograms(program: AgentProgram): ProgramHost {
  return {
    maxRequestBytes: MAX_REQUEST_BYTES,
    start: async (_signal, home) => AgentProcess.start(program, home ?? (await ProgramHome.create())),
  };
}

/** A process on this machine. */
export class AgentProcess implements ProgramProcess {
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

  /** Starts the program in this home, which belongs to the process from now on. */
  static async start(program: AgentProgram, home: ProgramHome): Promise<AgentProcess> {
    const preloads = await preloadTexts();
    const { command, args } = confinedCommand(process.execPath, program, { home: home.path, preloads });
    const child = spawn(command, args, {
      cwd: home.path,
      env: agentEnvironment(program, home.path, ORIGIN),
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    return new AgentProcess(child, home);
  }

  /** A folder of the process, empty at the start. */
  get folder(): string {
    return this.#home.workspace;
  }

  get stdin(): Writable {
    return required(this.#child.stdin);
  }

  get stdout(): Readable {
    return required(this.#child.stdout);
  }

  get requests(): Duplex {
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
    this.#reason ??= reason;
    this.#child.kill('SIGKILL');
  }

  /** Lets the process end and hands over its home. */
  async leave(): Promise<ProgramHome> {
    this.stdin.end();
    const timer = setTimeout(() => this.kill('the session is closed'), LEAVE_TIMEOUT_MS);
    await this.exited;
    clearTimeout(timer);
    return this.#home;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill('the session is closed');
    await this.exited;
    await this.#home[Symbol.asyncDispose]();
  }
}

function required<T>(stream: T | null | undefined): T {
  if (stream === null || stream === undefined) throw new TypeError('the agent has no pipes');
  return stream;
}
