import type { Clock } from '../lib/clock.ts';
import { onAbort, whenAborted } from '../lib/async/abort.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Controller } from './controller/controller.ts';
import type { LeaderElection } from './leader-election/leader-election.ts';

/** The part of a Reflector that the manager uses; without a type parameter, so that reflectors of different kinds fit in one list. */
interface Informer extends AsyncDisposable {
  readonly hasSynced: boolean;
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
}

/** Background work, besides the controllers, that only the leader does until the signal aborts. An error of a task ends the process. */
export interface LeaderTask {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

export interface ManagerOptions {
  clock: Clock;
  log: Logger;
  informers: Readonly<Record<string, Informer>>;
  controllers: readonly Pick<Controller, 'start' | 'stop'>[];
  /** Started together with the controllers. */
  tasks?: readonly LeaderTask[];
  /** Without an election every process runs the controllers. */
  election?: Pick<LeaderElection, 'start' | 'elected' | 'lost' | typeof Symbol.asyncDispose>;
  /** Resources that write on behalf of controllers, e.g. the event recorder. Disposed in reverse order, before the Lease is released. */
  resources?: readonly AsyncDisposable[];
  /** The timeout of the whole shutdown, in milliseconds; default 30,000. */
  graceMs?: number;
}

const DEFAULT_GRACE_MS = 30_000;
/** The part of the grace period that is reserved for the resources and the Lease. */
const RESOURCES_AND_LEASE_MS = 5_000;
/** The part of the grace period that is reserved for the Lease alone. */
const LEASE_MS = 2_000;

/**
 * Starts informers, then the election, then controllers and tasks. Shuts down in an order in which nothing writes after the Lease is released:
 * informers, controllers (draining their queues), tasks, resources, election.
 */
export class Manager {
  readonly #options: ManagerOptions;
  /** Aborted when the tasks must end. */
  readonly #working = new AbortController();
  #tasks: Promise<void>[] = [];

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  /** The names of the informers that have not synced yet, for `/readyz`. */
  unsyncedInformers(): readonly string[] {
    return Object.entries(this.#options.informers).flatMap(([name, informer]) => (informer.hasSynced ? [] : [name]));
  }

  /**
   * Runs until the signal aborts, then stops everything and resolves. Rejects with `TEMPER_LEADERSHIP_LOST` when another process may be the
   * leader, and with the error of a failed task: the process must then exit with code 1, immediately.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { election, log } = this.#options;
    const ended = Promise.withResolvers<never>();
    // Prevents an unhandled rejection before the race below awaits the promise.
    ended.promise.catch(() => {});
    using _lost =
      election === undefined ? undefined : onAbort(election.lost, () => ended.reject(election.lost.reason as Error));
    try {
      await Promise.race([this.#work(signal, (reason) => ended.reject(reason as Error)), ended.promise]);
    } catch (error) {
      if (!signal.aborted || election?.lost.aborted === true) {
        await this.#stopImmediately();
        throw error;
      }
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
    log.info({ informers: Object.keys(informers) }, 'informer caches synced');
    election?.start();
    await election?.elected(signal);
    if (this.#working.signal.aborted) return;
    for (const controller of controllers) controller.start();
    this.#tasks = tasks.map((task) => this.#runTask(task, fail));
    await whenAborted(signal);
  }

  async #runTask(task: LeaderTask, fail: (reason: unknown) => void): Promise<void> {
    const { signal } = this.#working;
    try {
      await task.run(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#options.log.error({ task: task.name, error }, 'leader task failed');
      fail(error);
    }
  }

  /** Stops the informers, drains the queues and flushes the resources before it releases the Lease. */
  async #stop(): Promise<void> {
    const { clock, informers, controllers, resources = [], election, graceMs = DEFAULT_GRACE_MS, log } = this.#options;
    const deadline = clock.monotonic() + graceMs;
    const remaining = (reserved: number): number => Math.max(0, deadline - reserved - clock.monotonic());
    await this.#within(remaining(0), disposeAll(Object.values(informers)));
    this.#working.abort();
    const drained = await Promise.all(
      controllers.map((controller) => controller.stop(remaining(RESOURCES_AND_LEASE_MS))),
    );
    if (drained.includes(false)) log.warn({}, 'the queues were not drained within the grace period');
    await this.#within(remaining(RESOURCES_AND_LEASE_MS), Promise.all(this.#tasks));
    for (const resource of [...resources].reverse())
      await this.#within(remaining(LEASE_MS), resource[Symbol.asyncDispose]());
    if (election !== undefined) await this.#within(remaining(0), election[Symbol.asyncDispose]());
  }

  /** Aborts everything without a grace period, since another process may already be the leader. */
  async #stopImmediately(): Promise<void> {
    const { informers, controllers, election } = this.#options;
    this.#working.abort();
    await Promise.all(controllers.map((controller) => controller.stop(0)));
    await Promise.all([disposeAll(Object.values(informers)), election?.[Symbol.asyncDispose]()]);
  }

  async #within(milliseconds: number, work: PromiseLike<unknown>): Promise<void> {
    const done = new AbortController();
    const timeout = this.#options.clock.sleep(milliseconds, done.signal).then(
      () => this.#options.log.warn({}, 'a component did not stop within the grace period'),
      () => {},
    );
    try {
      await Promise.race([work, timeout]);
    } finally {
      done.abort();
    }
  }
}

async function disposeAll(resources: readonly AsyncDisposable[]): Promise<void> {
  await Promise.all(resources.map((resource) => resource[Symbol.asyncDispose]()));
}
