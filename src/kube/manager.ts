import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Controller } from './controller.ts';
import type { LeaderElection } from './leader-election.ts';

/** What of a reflector the manager needs; so reflectors of many kinds stand in one list. */
interface Informer extends AsyncDisposable {
  readonly hasSynced: boolean;
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
}

/** Work beside the controllers that only the leader does, until its signal aborts. What it throws ends the process. */
export interface LeaderTask {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

export interface ManagerOptions {
  clock: Clock;
  log: Logger;
  informers: Readonly<Record<string, Informer>>;
  controllers: readonly Pick<Controller, 'start' | 'stop'>[];
  /** Started with the controllers. */
  tasks?: readonly LeaderTask[];
  /** Without it every process works. */
  election?: Pick<LeaderElection, 'start' | 'elected' | 'lost' | typeof Symbol.asyncDispose>;
  /** Ended last to first before the lease is given back: what writes on behalf of controllers, e.g. the event recorder. */
  resources?: readonly AsyncDisposable[];
  /** Milliseconds for the whole stop; 30,000 when not given. */
  grace?: number;
}

const GRACE = 30_000;
/** Kept of the grace for what comes after the queues: resources and the lease. */
const LAST_STEPS = 5_000;
/** Kept for the lease alone. */
const LAST_STEP = 2_000;

/** Informers, then the election, then controllers; and all of it down again in an order in which nothing writes after the lease is gone. */
export class Manager {
  readonly #options: ManagerOptions;
  /** Aborted when the tasks have to end. */
  readonly #working = new AbortController();
  #tasks: Promise<void>[] = [];

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  /** Names of informers whose first list is not there yet, for `/readyz`. */
  waitingFor(): readonly string[] {
    return Object.entries(this.#options.informers).flatMap(([name, informer]) => (informer.hasSynced ? [] : [name]));
  }

  /**
   * Runs until the signal aborts, then stops everything and resolves. Rejects with `TEMPER_LEADERSHIP_LOST` when another process may lead, and
   * with what a task threw: the process has to end with exit code 1, at once.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { election, log } = this.#options;
    const ended = Promise.withResolvers<never>();
    // Somebody waits for it below, but not from the beginning.
    ended.promise.catch(() => {});
    const lost = (): void => ended.reject(election?.lost.reason as Error);
    election?.lost.addEventListener('abort', lost, { once: true });
    try {
      await Promise.race([this.#work(signal, (reason) => ended.reject(reason as Error)), ended.promise]);
    } catch (error) {
      if (!signal.aborted || election?.lost.aborted === true) {
        await this.#drop();
        throw error;
      }
    } finally {
      election?.lost.removeEventListener('abort', lost);
    }
    log.info({}, 'stopping');
    await this.#stop();
  }

  /** Resolves when the signal aborts. */
  async #work(signal: AbortSignal, fail: (reason: unknown) => void): Promise<void> {
    const { informers, election, controllers, tasks = [], log } = this.#options;
    const all = Object.values(informers);
    for (const informer of all) informer.start();
    await Promise.all(all.map((informer) => informer.synced(signal)));
    log.info({ informers: Object.keys(informers) }, 'everything is known');
    election?.start();
    await election?.elected(signal);
    if (this.#working.signal.aborted) return;
    for (const controller of controllers) controller.start();
    this.#tasks = tasks.map((task) => this.#runTask(task, fail));
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  }

  async #runTask(task: LeaderTask, fail: (reason: unknown) => void): Promise<void> {
    const { signal } = this.#working;
    try {
      await task.run(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#options.log.error({ task: task.name, error }, 'a task of the leader failed');
      fail(error);
    }
  }

  /** Nothing new comes in, what is queued is done, what was written is told; only then may another one lead. */
  async #stop(): Promise<void> {
    const { clock, informers, controllers, resources = [], election, grace = GRACE, log } = this.#options;
    const deadline = clock.monotonic() + grace;
    const left = (reserve: number): number => Math.max(0, deadline - reserve - clock.monotonic());
    await this.#within(left(0), disposeAll(Object.values(informers)));
    this.#working.abort();
    const drained = await Promise.all(controllers.map((controller) => controller.stop(left(LAST_STEPS))));
    if (drained.includes(false)) log.warn({}, 'not everything queued was done within the grace');
    await this.#within(left(LAST_STEPS), Promise.all(this.#tasks));
    for (const resource of [...resources].reverse())
      await this.#within(left(LAST_STEP), resource[Symbol.asyncDispose]());
    if (election !== undefined) await this.#within(left(0), election[Symbol.asyncDispose]());
  }

  /** Somebody else may be at work already: everything is told to stop and nothing is waited for. */
  async #drop(): Promise<void> {
    const { informers, controllers, election } = this.#options;
    this.#working.abort();
    await Promise.all(controllers.map((controller) => controller.stop(0)));
    await Promise.all([disposeAll(Object.values(informers)), election?.[Symbol.asyncDispose]()]);
  }

  async #within(milliseconds: number, work: PromiseLike<unknown>): Promise<void> {
    const over = new AbortController();
    const late = this.#options.clock.sleep(milliseconds, over.signal).then(
      () => this.#options.log.warn({}, 'a part did not stop within the grace'),
      () => {},
    );
    await Promise.race([work, late]);
    over.abort();
  }
}

async function disposeAll(all: readonly AsyncDisposable[]): Promise<void> {
  await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
}
