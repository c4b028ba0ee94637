/** The sandbox port on runner processes: a small pool, kept warm, of which nothing is trusted and everything can be killed. */
import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { Op } from '../lib/operation.ts';
import { type EngineFiles, locateEngine, requireSafeVersions } from './engine-floor.ts';
import { inputText, runSession } from './job-session.ts';
import { type LaunchPlan, planLaunch } from './launch.ts';
import type { HostCalls, Job, Outcome, Sandbox, SandboxFailure } from './port.ts';
import { linkRunnerProgram } from './program.ts';
import { encodeFrame, MAX_DEPTH, MAX_INPUT_BYTES, MAX_SOURCE_BYTES } from './protocol.ts';
import { type ResidentReader, residentReader } from './resident.ts';
import { RunnerProcess } from './runner-process.ts';

export interface SupervisorOptions {
  clock: Clock;
  /** Runners kept idle, so that neither a first call nor one after a kill waits for a start. */
  warm?: number;
  /** Jobs at the same time. */
  maxRunners?: number;
  /** The Node that runs the runners; this process's own by default. */
  nodePath?: string;
}

export interface Supervisor extends Sandbox {
  /** Process ids of the runners there are now. */
  readonly processes: readonly number[];
  /** Ends every runner and refuses what waits; resolves when the last process is gone. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Calls after which a runner is replaced, however well it did. */
const CALLS_PER_RUNNER = 100;
/** From here on one that has done this many calls may be relieved by a new one. */
const CALLS_BEFORE_RELIEF = 60;
/** A new runner is started while those there are can still answer this many calls: about those that a start takes, and some. */
const CALLS_A_START_TAKES = 130;
/** Starts that may fail one after the other before waiting jobs are told so. */
const FAILED_STARTS = 3;
/** Bytes that an idle runner may hold: twice what it begins with. */
const SWOLLEN = 104_857_600;
/** A runner that takes longer than this many milliseconds to be ready, at its start or after a job, is killed. */
const READY_WITHIN = 10_000;

/** Starts the sandbox. Throws TEMPER_SANDBOX_UNAVAILABLE when it cannot be had safely; there is no lesser one. */
export async function createSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const engine = locateEngine();
  requireSafeVersions(process.versions.node, engine.version);
  const pool = new Pool(options, engine, planLaunch(options.nodePath ?? process.execPath, engine));
  try {
    await pool.warmUp();
  } catch (error) {
    await pool[Symbol.asyncDispose]();
    throw error;
  }
  return pool;
}

interface Member {
  runner: RunnerProcess;
  state: 'starting' | 'idle' | 'busy' | 'resetting';
  calls: number;
  watchdog: NodeJS.Timeout | undefined;
}

interface Refusal {
  code: SandboxFailure;
  message: string;
}

interface Waiting {
  take(member: Member): void;
  refuse(code: SandboxFailure, message: string): void;
}

class Pool implements Supervisor {
  readonly #clock: Clock;
  readonly #warm: number;
  readonly #maxRunners: number;
  readonly #plan: LaunchPlan;
  readonly #resident: ResidentReader = residentReader(process.platform);
  readonly #members = new Set<Member>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #queue = new Set<Waiting>();
  readonly #program: Promise<Buffer>;
  #failedStarts = 0;
  #lastFailure = '';
  #lastComplaint = '';
  #jobs = 0;
  #closed = false;

  constructor(options: SupervisorOptions, engine: EngineFiles, plan: LaunchPlan) {
    this.#clock = options.clock;
    this.#warm = options.warm ?? 1;
    this.#maxRunners = Math.max(1, options.maxRunners ?? 2);
    this.#plan = plan;
    this.#program = linkRunnerProgram().then((program) => encodeFrame({ program, engine: engine.entry }));
  }

  get processes(): readonly number[] {
    return [...this.#members].flatMap((member) => member.runner.pid ?? []);
  }

  /** Starts the spares and waits for one of them, so that a sandbox that cannot work is known at once. */
  async warmUp(): Promise<void> {
    if (this.#warm === 0) return;
    for (let index = 0; index < this.#warm; index += 1) this.#start();
    const first = await this.#waitInLine(new AbortController().signal);
    if ('code' in first) {
      const details = { complaint: printable(this.#lastComplaint) };
      throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', first.message, { details });
    }
    this.#rest(first);
  }

  async run(job: Job, host: HostCalls, op: Op): Promise<Outcome> {
    const input = inputText(job.input);
    const tooLarge = refuseSize(job, input);
    if (tooLarge !== undefined || input === undefined) {
      return failure('TEMPER_SANDBOX_INPUT_TOO_LARGE', tooLarge ?? 'the input cannot be written as JSON');
    }
    const member = await this.#obtain(op.signal);
    if ('code' in member) return failure(member.code, member.message);
    this.#jobs += 1;
    const { runner } = member;
    const parts = { runner, clock: this.#clock, resident: this.#resident, job, input, host, op, number: this.#jobs };
    return new Promise((resolve) => {
      runSession(parts, ({ outcome, reusable }) => {
        this.#takeBack(member, reusable);
        resolve(outcome);
      });
      // Starting a process holds this thread for some milliseconds: after the job is sent, while its runner works.
      this.#keepWarm();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const waiting of this.#queue) waiting.refuse('TEMPER_CANCELLED', 'the sandbox is closing');
    for (const member of this.#members) member.runner.kill('the sandbox is closing');
    await this.#program.catch(() => {});
    await Promise.all(this.#leaving);
  }

  /** A runner marked busy, now or later; or why there is none. */
  #obtain(signal: AbortSignal): Promise<Member | Refusal> {
    if (this.#closed) return Promise.resolve({ code: 'TEMPER_CANCELLED', message: 'the sandbox is closed' });
    if (signal.aborted) return Promise.resolve({ code: 'TEMPER_CANCELLED', message: 'the caller withdrew the call' });
    const idle = this.#busyCount() < this.#maxRunners ? this.#idleMember() : undefined;
    if (idle === undefined) {
      const inLine = this.#waitInLine(signal);
      this.#keepWarm();
      return inLine;
    }
    idle.state = 'busy';
    return Promise.resolve(idle);
  }

  #waitInLine(signal: AbortSignal): Promise<Member | Refusal> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#queue.delete(waiting);
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => waiting.refuse('TEMPER_CANCELLED', 'the caller withdrew the call');
      const waiting: Waiting = {
        take: (member) => {
          leave();
          member.state = 'busy';
          resolve(member);
        },
        refuse: (code, message) => {
          leave();
          resolve({ code, message });
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.add(waiting);
    });
  }

  /** The one that has rested longest: its next environment is surely prepared. */
  #idleMember(): Member | undefined {
    for (const member of this.#members) if (member.state === 'idle') return member;
    return undefined;
  }

  #busyCount(): number {
    let count = 0;
    for (const member of this.#members) if (member.state === 'busy') count += 1;
    return count;
  }

  /** Starts what is missing: the runners that are needed, and one to relieve the most worn before all are used up together. */
  #keepWarm(): void {
    if (this.#closed) return;
    const needed = this.#needed();
    while (this.#members.size < needed) this.#start();
    if (this.#warm > 0 && this.#members.size === needed && this.#needsRelief()) this.#start();
  }

  /** A runner for each job that may run now, at least one once there are jobs, and the spares. */
  #needed(): number {
    const least = this.#jobs > 0 || this.#queue.size > 0 ? 1 : 0;
    const working = Math.min(this.#maxRunners, this.#busyCount() + this.#queue.size);
    return Math.max(least, working) + this.#warm;
  }

  #needsRelief(): boolean {
    const members = [...this.#members];
    if (members.some((member) => member.state === 'starting')) return false;
    const left = members.reduce((sum, member) => sum + CALLS_PER_RUNNER - member.calls, 0);
    return left < CALLS_A_START_TAKES && members.some((member) => member.calls >= CALLS_BEFORE_RELIEF);
  }

  /** A new one is ready: the most worn that rests may go. */
  #relieve(): void {
    if (this.#members.size <= this.#needed()) return;
    const resting = [...this.#members].filter(({ state, calls }) => state === 'idle' && calls >= CALLS_BEFORE_RELIEF);
    const worn = resting.toSorted((one, other) => other.calls - one.calls)[0];
    if (worn !== undefined) this.#retire(worn);
  }

  #retire(member: Member): void {
    member.runner.kill('it is replaced');
    this.#bury(member, 'it is replaced');
  }

  #start(): void {
    const runner = new RunnerProcess(this.#plan, { frame: () => {}, gone: () => {} });
    const member: Member = { runner, state: 'starting', calls: 0, watchdog: undefined };
    this.#members.add(member);
    const leaving = runner.exited.finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
    this.#listen(member);
    this.#program.then(
      (bytes) => runner.sendBytes(bytes),
      () => runner.kill('its program cannot be read'),
    );
  }

  /** Between jobs a runner may only greet and become ready. */
  #listen(member: Member): void {
    const { runner } = member;
    member.watchdog = setTimeout(() => runner.kill('it was not ready in time'), READY_WITHIN);
    runner.listener = {
      frame: (frame) => {
        if (frame.type === 'ready' && member.state !== 'idle') this.#becomeReady(member);
        else if (frame.type === 'hello' && member.state === 'starting') this.#checkVersions(runner, frame);
        else runner.kill('it broke the protocol');
      },
      gone: (reason) => this.#bury(member, reason),
    };
  }

  #checkVersions(runner: RunnerProcess, hello: { runtime: string; engine: string }): void {
    try {
      requireSafeVersions(hello.runtime, hello.engine);
    } catch (error) {
      runner.kill(isTemperError(error) ? error.message : 'its versions cannot be read');
    }
  }

  #becomeReady(member: Member): void {
    clearTimeout(member.watchdog);
    const isNew = member.state === 'starting';
    if (isNew) this.#failedStarts = 0;
    if (this.#isSwollen(member)) member.runner.kill('it is replaced');
    else this.#rest(member);
    if (isNew) this.#relieve();
  }

  /** What an earlier job left behind must not count against the next one. */
  #isSwollen({ runner }: Member): boolean {
    const held = runner.pid === undefined ? undefined : this.#resident(runner.pid);
    return typeof held === 'number' && held > SWOLLEN;
  }

  /** Hands the runner to who waits longest, or lets it rest at the end of the line. */
  #rest(member: Member): void {
    member.state = 'idle';
    this.#members.delete(member);
    this.#members.add(member);
    if (this.#busyCount() >= this.#maxRunners) return;
    for (const waiting of this.#queue) {
      waiting.take(member);
      return;
    }
  }

  #takeBack(member: Member, reusable: boolean): void {
    member.calls += 1;
    member.state = 'resetting';
    this.#listen(member);
    if (reusable && member.calls < CALLS_PER_RUNNER && !this.#closed) return;
    this.#retire(member);
  }

  #bury(member: Member, reason: string): void {
    clearTimeout(member.watchdog);
    if (!this.#members.delete(member)) return;
    if (member.state === 'starting') {
      this.#failedStarts += 1;
      this.#lastFailure = reason;
      this.#lastComplaint = member.runner.complaint;
    }
    if (this.#failedStarts >= FAILED_STARTS) {
      this.#failedStarts = 0;
      for (const waiting of this.#queue) {
        waiting.refuse('TEMPER_SANDBOX_UNAVAILABLE', `the sandbox does not start: ${this.#lastFailure}`);
      }
      return;
    }
    const idle = this.#idleMember();
    if (idle === undefined) {
      this.#keepWarm();
      return;
    }
    this.#rest(idle);
    // Starting a process holds this thread for some milliseconds; who has just been answered may first ask again.
    setImmediate(() => this.#keepWarm());
  }
}

function refuseSize(job: Job, input: string | undefined): string | undefined {
  if (input === undefined) return `the input is nested deeper than ${MAX_DEPTH}`;
  if (Buffer.byteLength(input) > MAX_INPUT_BYTES) return `the input is larger than ${MAX_INPUT_BYTES} bytes`;
  if (Buffer.byteLength(job.source) > MAX_SOURCE_BYTES) return `the source is larger than ${MAX_SOURCE_BYTES} bytes`;
  return undefined;
}

function failure(code: SandboxFailure, message: string): Outcome {
  return { ok: false, code, message, usage: { milliseconds: 0, heapBytes: 0, hostCalls: 0 } };
}
