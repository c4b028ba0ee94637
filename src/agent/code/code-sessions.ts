import type { CallOptions } from '../../lib/call-options.ts';
import type { SessionLimits, SessionRunner, SessionSandbox } from '../../sandbox/session-port.ts';
import { memoryText, type StoredMemory } from './stored-memory.ts';

/** Limits of one run of code; see the reference page of code mode. */
const CODE_LIMITS: SessionLimits = {
  memoryBytes: 134_217_728,
  guestMilliseconds: 10_000,
  runMilliseconds: 900_000,
  outputBytes: 1_048_576,
  snapshotBytes: 65_536,
  logBytes: 16_384,
  calls: 1_200,
  callBytes: 16_777_216,
};

/** Runners that are kept without a run. Each takes about 50 MB. */
const MAX_IDLE_RUNNERS = 4;
/** A runner without a run ends after this time; its session continues from the stored memory. */
const IDLE_MS = 300_000;

/** A runner for one run. `isNew`: it has no closures and no globals of earlier runs. */
export interface AcquiredRunner {
  runner: SessionRunner;
  isNew: boolean;
  /** Keeps the runner for the next run of the session, which starts with this memory; without a memory it ends. */
  release(memory: StoredMemory | undefined): void;
}

interface IdleRunner {
  runner: SessionRunner;
  memory: string;
  timer: NodeJS.Timeout;
}

/** The runners of the sessions of one agent. A session has at most one, and no two sessions share one. */
export class CodeSessions {
  readonly #sandbox: SessionSandbox;
  readonly #idle = new Map<string, IdleRunner>();
  #isClosed = false;

  constructor(sandbox: SessionSandbox) {
    this.#sandbox = sandbox;
  }

  /** `reuse: false` always starts a new runner. Throws the errors of the sandbox. */
  async acquire(
    session: string,
    memory: StoredMemory,
    { reuse }: { reuse: boolean },
    op: CallOptions,
  ): Promise<AcquiredRunner> {
    const idle = this.#take(session);
    // Another process may have run code of the session meanwhile: the stored memory is then another one.
    const isCurrent = reuse && idle?.runner.isOpen === true && idle.memory === memoryText(memory);
    if (idle !== undefined && !isCurrent) await idle.runner.close();
    const runner =
      idle !== undefined && isCurrent
        ? idle.runner
        : await this.#sandbox.openSession({ limits: CODE_LIMITS, memory: memory.values }, op);
    return { runner, isNew: !isCurrent, release: (next) => this.#release(session, runner, next) };
  }

  async close(session: string): Promise<void> {
    await this.#take(session)?.runner.close();
  }

  async closeAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#idle.keys()].map((session) => this.close(session)));
  }

  #take(session: string): IdleRunner | undefined {
    const idle = this.#idle.get(session);
    this.#idle.delete(session);
    clearTimeout(idle?.timer);
    return idle;
  }

  #release(session: string, runner: SessionRunner, memory: StoredMemory | undefined): void {
    if (memory === undefined || !runner.isOpen || this.#isClosed) {
      void runner.close();
      return;
    }
    const timer = setTimeout(() => void this.close(session), IDLE_MS).unref();
    this.#idle.set(session, { runner, memory: memoryText(memory), timer });
    const [oldest] = this.#idle.keys();
    if (this.#idle.size > MAX_IDLE_RUNNERS && oldest !== undefined) void this.close(oldest);
  }
}
