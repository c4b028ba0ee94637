/**
 * Implements the sandbox port with a small warm pool of runner processes. The pool trusts no runner and can kill any of them.
 *
 * States of a runner:
 *
 *   #start()                 hello, ready          #acquire(), or a queued job
 *   ----------->  starting  ------------->  idle  --------------------------->  busy
 *                                            ^                                    |  job settled: #release()
 *                                            |              ready                 v
 *                                            +-------------------------------  resetting
 *
 * Every state can end in a kill: a protocol violation, an unsafe version, no `ready` within READY_TIMEOUT_MS (starting,
 * resetting), a failed job that leaves the runner unusable, too many calls (#retire), too much memory, or the end of the
 * process itself. #onExit then removes the runner from the pool and starts a replacement. MAX_FAILED_STARTS consecutive
 * failures in state starting refuse all queued jobs.
 *
 * States of the pool:
 *
 *             every runner idle and no job for IDLE_TIMEOUT_MS: #sleep() kills all runners
 *   active  ----------------------------------------------------------------------------->  dormant
 *      ^                                                                                       |
 *      +---------------------------------------------------------------------------------------+
 *                                        the next job: #wake()
 *
 * A dormant pool has no runner and starts none, so a sandbox without work holds no memory of a runner.
 */
import { onAbort } from '../lib/async/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { locateEngine, requireSafeVersions } from './min-engine-version.ts';
import { runJobSession, type JobSessionOptions } from './job-session.ts';
import { encodeInput } from './json-text.ts';
import { type RunnerCommand, runnerCommand } from './runner-command.ts';
import type { HostCalls, Job, JobOutcome, Sandbox, SandboxFailure } from './port.ts';
import { linkRunnerProgram } from './program.ts';
import { encodeFrame, MAX_DEPTH, MAX_INPUT_BYTES, MAX_SOURCE_BYTES } from './protocol.ts';
import { type MemoryReader, createMemoryReader } from './memory-usage.ts';
import { PriorityTurns } from '../lib/async/priority-turns.ts';
import { nextJob, runnerFor, runnerToReplace } from './runner-choice.ts';
import { RunnerProcess } from './runner-process.ts';
import type { SessionOptions, SessionRunner, SessionSandbox } from './session-port.ts';
import { SessionProcesses } from './session/session-processes.ts';

export interface SupervisorOptions {
  clock: Clock;
  /** Number of spare runners, so that neither a first call nor a call after a kill waits for a start. */
  warm?: number;
  /** Maximum number of concurrent jobs. */
  maxRunners?: number;
  /** Maximum number of sessions that have a process at the same time. */
  maxSessions?: number;
  /** Milliseconds in which no job starts, after which spare runners start. Starting one blocks this thread for about 0.1 ms per MiB of its memory. */
  pauseMs?: number;
  /** The Node binary of the runners; by default the binary of this process. */
  nodePath?: string;
}

export interface Supervisor extends Sandbox, SessionSandbox {
  /** Process ids of the current runners. */
  readonly processes: readonly number[];
  /** Kills every runner, ends every session and refuses the waiting jobs; resolves when the last process has exited. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Calls after which a runner is replaced in any case. */
const MAX_CALLS_PER_RUNNER = 100;
/** Calls after which a runner may be replaced early by a new one. */
const MIN_CALLS_BEFORE_REPLACEMENT = 60;
/** When the runners together have fewer calls left than this, a new one is started in the next pause. */
const MIN_CALLS_LEFT_IN_PAUSE = 130;
/** When they have fewer than this, it is started at once: about the number of calls during one start. */
const MIN_CALLS_LEFT = 50;
const DEFAULT_PAUSE_MS = 5;
/** The owner of jobs that belong to no session. */
const NO_SESSION = '';
/** Consecutive failed starts after which the waiting jobs are refused. */
const MAX_FAILED_STARTS = 3;
/** Memory limit of an idle runner, in bytes: twice the memory after its start. */
const MAX_IDLE_BYTES = 104_857_600;
/** Time without a job after which all runners end. A first call after it waits for the start of a runner: about 80 ms. */
const IDLE_TIMEOUT_MS = 60_000;
/** A runner that is not ready within this time after its start or after a job is killed. */
const READY_TIMEOUT_MS = 10_000;

/** Starts the sandbox. Throws TEMPER_SANDBOX_UNAVAILABLE when it cannot run safely; there is no less safe fallback. */
export async function createSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const engine = locateEngine();
  requireSafeVersions(process.versions.node, engine.version);
  const command = runnerCommand(options.nodePath ?? process.execPath, engine);
  const program = linkRunnerProgram().then((text) => encodeFrame({ program: text, engine: engine.entry }));
  const pool = new RunnerPool(options, command, program);
  try {
    await pool.warmUp();
  } catch (error) {
    await pool[Symbol.asyncDispose]();
    throw error;
  }
  return pool;
}

interface PooledRunner {
  runner: RunnerProcess;
  state: 'starting' | 'idle' | 'busy' | 'resetting';
  calls: number;
  /** The session whose jobs it runs; undefined before its first job. */
  owner: string | undefined;
  watchdog: NodeJS.Timeout | undefined;
}

interface JobRefusal {
  code: SandboxFailure;
  message: string;
}

interface WaitingJob {
  /** Undefined for a wait that runs no job. */
  owner: string | undefined;
  rank: number;
  take(pooled: PooledRunner): void;
  refuse(code: SandboxFailure, message: string): void;
}

class RunnerPool implements Supervisor {
  readonly #clock: Clock;
  readonly #warm: number;
  readonly #maxRunners: number;
  readonly #pauseMs: number;
  readonly #plan: RunnerCommand;
  readonly #resident: MemoryReader = createMemoryReader(process.platform);
  readonly #runners = new Set<PooledRunner>();
  readonly #exits = new Set<Promise<void>>();
  readonly #queue = new Set<WaitingJob>();
  readonly #turns = new PriorityTurns();
  readonly #program: Promise<Buffer>;
  readonly #sessions: SessionProcesses;
  #failedStarts = 0;
  #lastFailure = '';
  #lastStderr = '';
  #jobs = 0;
  /** The owner of the last job. */
  #lastOwner: string | undefined;
  #lastActivity: number;
  #pause: NodeJS.Timeout | undefined;
  #dormant = true;
  #closed = false;
  readonly #closing = new AbortController();

  constructor(options: SupervisorOptions, plan: RunnerCommand, program: Promise<Buffer>) {
    this.#clock = options.clock;
    this.#warm = options.warm ?? 1;
    this.#maxRunners = Math.max(1, options.maxRunners ?? 2);
    this.#pauseMs = options.pauseMs ?? DEFAULT_PAUSE_MS;
    this.#lastActivity = options.clock.monotonic();
    this.#plan = plan;
    this.#program = program;
    const { clock, maxSessions } = options;
    this.#sessions = new SessionProcesses({ clock, command: plan, program, readMemory: this.#resident, maxSessions });
  }

  get processes(): readonly number[] {
    return [...[...this.#runners].flatMap((pooled) => pooled.runner.pid ?? []), ...this.#sessions.processes];
  }

  openSession(options: SessionOptions, op: CallOptions): Promise<SessionRunner> {
    return this.#sessions.openSession(options, op);
  }

  /** Starts the spare runners and waits for one of them, so that a broken sandbox is reported at startup. */
  async warmUp(): Promise<void> {
    if (this.#warm === 0) return;
    this.#wake();
    for (let index = 0; index < this.#warm; index += 1) this.#start();
    const first = await this.#enqueue({ owner: undefined, rank: 0 }, new AbortController().signal);
    if ('code' in first) {
      const details = { stderr: printable(this.#lastStderr) };
      throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', first.message, { details });
    }
    this.#markIdle(first);
  }

  async run(job: Job, host: HostCalls, op: CallOptions): Promise<JobOutcome> {
    const input = encodeInput(job.input);
    const tooLarge = refuseSize(job, input);
    if (tooLarge !== undefined || input === undefined) {
      return failure('TEMPER_SANDBOX_INPUT_TOO_LARGE', tooLarge ?? 'the input cannot be written as JSON');
    }
    const pooled = await this.#acquire({ owner: job.owner ?? NO_SESSION, rank: job.rank ?? 0 }, op.signal);
    if ('code' in pooled) return failure(pooled.code, pooled.message);
    this.#jobs += 1;
    const { runner } = pooled;
    const parts: JobSessionOptions = {
      runner,
      clock: this.#clock,
      readMemory: this.#resident,
      job,
      input,
      host,
      op,
      number: this.#jobs,
    };
    return new Promise((resolve) => {
      runJobSession(parts, ({ outcome, reusable }) => {
        this.#release(pooled, reusable);
        resolve(outcome);
      });
      // Starting a process blocks this thread for some milliseconds, so it happens after the job was sent.
      this.#keepWarm();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    clearTimeout(this.#pause);
    for (const waiting of this.#queue) waiting.refuse('TEMPER_CANCELLED', 'the sandbox is closing');
    for (const pooled of this.#runners) pooled.runner.kill('the sandbox is closing');
    await this.#program.catch(() => {});
    await Promise.all([...this.#exits, this.#sessions[Symbol.asyncDispose]()]);
  }

  /** Resolves with a runner in state busy, or with the reason of a refusal. */
  #acquire({ owner, rank }: { owner: string; rank: number }, signal: AbortSignal): Promise<PooledRunner | JobRefusal> {
    if (this.#closed) return Promise.resolve({ code: 'TEMPER_CANCELLED', message: 'the sandbox is closed' });
    if (signal.aborted) return Promise.resolve({ code: 'TEMPER_CANCELLED', message: 'the caller cancelled the call' });
    this.#wake();
    const idle = this.#busyCount() < this.#maxRunners ? runnerFor(this.#runners, owner) : undefined;
    if (idle === undefined) {
      const waitingResult = this.#enqueue({ owner, rank }, signal);
      this.#keepWarm();
      return waitingResult;
    }
    idle.state = 'busy';
    idle.owner = owner;
    this.#lastOwner = owner;
    return Promise.resolve(idle);
  }

  #enqueue(
    { owner, rank }: Pick<WaitingJob, 'owner' | 'rank'>,
    signal: AbortSignal,
  ): Promise<PooledRunner | JobRefusal> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#queue.delete(waiting);
        listener[Symbol.dispose]();
      };
      const waiting: WaitingJob = {
        owner,
        rank,
        take: (pooled) => {
          leave();
          pooled.state = 'busy';
          pooled.owner = owner;
          this.#lastOwner = owner;
          resolve(pooled);
        },
        refuse: (code, message) => {
          leave();
          resolve({ code, message });
        },
      };
      this.#queue.add(waiting);
      const listener = onAbort(signal, () => waiting.refuse('TEMPER_CANCELLED', 'the caller cancelled the call'));
    });
  }

  /** Notes a job. Makes a dormant pool active. */
  #wake(): void {
    this.#lastActivity = this.#clock.monotonic();
    if (!this.#dormant) return;
    this.#dormant = false;
    void this.#sleepWhenIdle();
  }

  async #sleepWhenIdle(): Promise<void> {
    while (!this.#closed) {
      const isIdle = this.#queue.size === 0 && [...this.#runners].every(({ state }) => state === 'idle');
      const idleMs = this.#clock.monotonic() - this.#lastActivity;
      if (isIdle && idleMs >= IDLE_TIMEOUT_MS) {
        this.#sleep();
        return;
      }
      const waitMs = isIdle ? IDLE_TIMEOUT_MS - idleMs : IDLE_TIMEOUT_MS;
      await this.#clock.sleep(waitMs, this.#closing.signal).catch(() => undefined);
    }
  }

  #sleep(): void {
    this.#dormant = true;
    const runners = [...this.#runners];
    for (const pooled of runners) this.#retire(pooled);
  }

  #busyCount(): number {
    let count = 0;
    for (const pooled of this.#runners) if (pooled.state === 'busy') count += 1;
    return count;
  }

  /** Starts the runners for the jobs that may run now, and spares when few calls are left or no job comes for a moment. */
  #keepWarm(): void {
    if (this.#closed || this.#dormant) return;
    while (this.#runners.size < this.#workingSize()) this.#start();
    this.#replaceForNextOwner();
    if (this.#callsLeft() < MIN_CALLS_LEFT) this.#startSpares();
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#startSpares(), this.#pauseMs);
  }

  /** Starts the missing runners, and one extra before all runners reach their call limit at the same time. */
  #startSpares(): void {
    if (this.#closed || this.#dormant) return;
    const target = this.#workingSize() + this.#warm;
    while (this.#runners.size < target) this.#start();
    if (this.#warm > 0 && this.#runners.size === target && this.#needsReplacement()) this.#start();
  }

  /** One runner for each job that may run now, and at least one after the first job. */
  #workingSize(): number {
    const minimum = this.#jobs > 0 || this.#queue.size > 0 ? 1 : 0;
    return Math.max(minimum, Math.min(this.#maxRunners, this.#busyCount() + this.#queue.size));
  }

  /** Keeps an unused runner for a session that has none, in the place of an idle one of another session than the last. */
  #replaceForNextOwner(): void {
    const [waiting] = this.#queue;
    if (this.#warm === 0 && waiting === undefined) return;
    const replaced = runnerToReplace(this.#runners, waiting === undefined ? this.#lastOwner : waiting.owner);
    if (replaced === undefined) return;
    this.#runners.delete(replaced);
    clearTimeout(replaced.watchdog);
    replaced.runner.kill('the runner is replaced');
    this.#start();
  }

  #needsReplacement(): boolean {
    const runners = [...this.#runners];
    if (runners.some((pooled) => pooled.state === 'starting')) return false;
    const isWorn = runners.some((pooled) => pooled.calls >= MIN_CALLS_BEFORE_REPLACEMENT);
    return isWorn && this.#callsLeft() < MIN_CALLS_LEFT_IN_PAUSE;
  }

  #callsLeft(): number {
    return [...this.#runners].reduce((sum, pooled) => sum + MAX_CALLS_PER_RUNNER - pooled.calls, 0);
  }

  /** Called when a new runner is ready: retires the idle runner with the most calls. */
  #replaceMostUsed(): void {
    if (this.#runners.size <= this.#workingSize() + this.#warm) return;
    const idleRunners = [...this.#runners].filter(
      ({ state, calls }) => state === 'idle' && calls >= MIN_CALLS_BEFORE_REPLACEMENT,
    );
    const mostUsed = idleRunners.toSorted((first, second) => second.calls - first.calls)[0];
    if (mostUsed !== undefined) this.#retire(mostUsed);
  }

  #retire(pooled: PooledRunner): void {
    pooled.runner.kill('the runner is replaced');
    this.#onExit(pooled, 'the runner is replaced');
  }

  #start(): void {
    const runner = new RunnerProcess(this.#plan, { frame: () => {}, ended: () => {} });
    const pooled: PooledRunner = { runner, state: 'starting', calls: 0, owner: undefined, watchdog: undefined };
    this.#runners.add(pooled);
    const exit = runner.exited.finally(() => this.#exits.delete(exit));
    this.#exits.add(exit);
    this.#listen(pooled);
    this.#program.then(
      (bytes) => runner.sendBytes(bytes),
      () => runner.kill('the program of the runner cannot be read'),
    );
  }

  /** Listens to a runner between jobs, when it may only send `hello` (once, at its start) and `ready`. */
  #listen(pooled: PooledRunner): void {
    const { runner } = pooled;
    pooled.watchdog = setTimeout(() => runner.kill('the runner was not ready in time'), READY_TIMEOUT_MS);
    runner.listener = {
      frame: (frame) => {
        if (frame.type === 'ready' && pooled.state !== 'idle') this.#becomeReady(pooled);
        else if (frame.type === 'hello' && pooled.state === 'starting') this.#checkVersions(runner, frame);
        else runner.kill('the runner violated the protocol');
      },
      ended: (reason) => this.#onExit(pooled, reason),
    };
  }

  #checkVersions(runner: RunnerProcess, hello: { runtime: string; engine: string }): void {
    try {
      requireSafeVersions(hello.runtime, hello.engine);
    } catch (error) {
      runner.kill(isTemperError(error) ? error.message : 'the versions of the runner cannot be parsed');
    }
  }

  #becomeReady(pooled: PooledRunner): void {
    clearTimeout(pooled.watchdog);
    const isNew = pooled.state === 'starting';
    if (isNew) this.#failedStarts = 0;
    if (this.#isOversized(pooled)) pooled.runner.kill('the runner is replaced');
    else this.#markIdle(pooled);
    if (isNew) this.#replaceMostUsed();
  }

  /** Whether the runner still uses too much memory after a job; that would count against the limit of the next job. */
  #isOversized({ runner }: PooledRunner): boolean {
    const residentBytes = runner.pid === undefined ? undefined : this.#resident(runner.pid);
    return typeof residentBytes === 'number' && residentBytes > MAX_IDLE_BYTES;
  }

  /** Puts the runner at the end of the idle runners, and gives waiting jobs the runners that they may use. */
  #markIdle(pooled: PooledRunner): void {
    pooled.state = 'idle';
    this.#runners.delete(pooled);
    this.#runners.add(pooled);
    this.#dispatch();
    // The runner may be of another session than the jobs that wait.
    if (this.#queue.size > 0) this.#keepWarm();
  }

  #dispatch(): void {
    while (this.#busyCount() < this.#maxRunners) {
      const next = nextJob(this.#queue, this.#runners, { lastOwner: this.#lastOwner, turns: this.#turns });
      if (next === undefined) return;
      next.job.take(next.runner);
    }
  }

  #release(pooled: PooledRunner, reusable: boolean): void {
    this.#lastActivity = this.#clock.monotonic();
    pooled.calls += 1;
    pooled.state = 'resetting';
    this.#listen(pooled);
    if (reusable && pooled.calls < MAX_CALLS_PER_RUNNER && !this.#closed) return;
    this.#retire(pooled);
  }

  #onExit(pooled: PooledRunner, reason: string): void {
    clearTimeout(pooled.watchdog);
    if (!this.#runners.delete(pooled)) return;
    if (pooled.state === 'starting') {
      this.#failedStarts += 1;
      this.#lastFailure = reason;
      this.#lastStderr = pooled.runner.stderr;
    }
    if (this.#failedStarts >= MAX_FAILED_STARTS) {
      this.#failedStarts = 0;
      for (const waiting of this.#queue) {
        waiting.refuse('TEMPER_SANDBOX_UNAVAILABLE', `the sandbox does not start: ${this.#lastFailure}`);
      }
      return;
    }
    this.#dispatch();
    const isIdle = this.#queue.size === 0 && [...this.#runners].some(({ state }) => state === 'idle');
    if (!isIdle) {
      this.#keepWarm();
      return;
    }
    // Starting a process blocks this thread for some milliseconds, so a caller that has just got a result may send its next job first.
    setImmediate(() => this.#keepWarm());
  }
}

function refuseSize(job: Job, input: string | undefined): string | undefined {
  if (input === undefined) return `the input is nested deeper than ${MAX_DEPTH}`;
  if (Buffer.byteLength(input) > MAX_INPUT_BYTES) return `the input is larger than ${MAX_INPUT_BYTES} bytes`;
  if (Buffer.byteLength(job.source) > MAX_SOURCE_BYTES) return `the source is larger than ${MAX_SOURCE_BYTES} bytes`;
  return undefined;
}

function failure(code: SandboxFailure, message: string): JobOutcome {
  return { ok: false, code, message, usage: { milliseconds: 0, heapBytes: 0, hostCalls: 0 } };
}
