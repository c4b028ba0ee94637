import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import { ApiError, type KubeClient } from './client.ts';
import { LEASES, type LeaseRecord, leaseSpec, readLease } from './lease.ts';
import type { Metrics } from './metrics.ts';

export interface LeaderElectionOptions {
  /** Not one that asks this election whether it may write. */
  client: Pick<KubeClient, 'get' | 'create' | 'patch'>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** From 0 up to 1. */
  random: () => number;
  /** The Lease. */
  namespace: string;
  name: string;
  /** Unlike that of any other process, e.g. `<hostname>_<uuid>`. */
  identity: string;
  /** Milliseconds; 15,000, 10,000 and 2,000 when not given. */
  leaseDuration?: number;
  renewDeadline?: number;
  retryPeriod?: number;
}

const DEFAULTS = { leaseDuration: 15_000, renewDeadline: 10_000, retryPeriod: 2_000 };
/** Candidates look a little earlier by chance, never later: a handover must not wait for it. */
const JITTER = 1.2;
const CONFLICT = 409;

/** The lease as last read, and when it was first seen to be so. */
interface Observation {
  readonly record: LeaseRecord;
  readonly since: number;
}

/** When a renewal was begun, by two clocks: the monotonic one stands still while a machine sleeps. */
interface Held {
  readonly at: number;
  readonly wallClock: number;
}

/**
 * One process of many leads, by a Lease. Whether another one is dead is judged by how long its lease was seen unchanged here, never by the
 * times it wrote. A process that once led and no longer does never leads again: it ends.
 */
export class LeaderElection implements AsyncDisposable {
  readonly #options: LeaderElectionOptions & typeof DEFAULTS;
  readonly #stopping = new AbortController();
  readonly #lost = new AbortController();
  readonly #waiting = new Set<() => void>();
  #running: Promise<void> | undefined;
  #observed: Observation | undefined;
  #held: Held | undefined;

  /** Throws RangeError when the three times do not leave room for one another. */
  constructor(options: LeaderElectionOptions) {
    this.#options = { ...DEFAULTS, ...options };
    const { leaseDuration, renewDeadline, retryPeriod } = this.#options;
    if (leaseDuration <= renewDeadline || renewDeadline <= retryPeriod * JITTER) {
      throw new RangeError('leaseDuration > renewDeadline > 1.2 × retryPeriod must hold');
    }
    this.#show(0);
  }

  /** False as soon as another process might lead, by this process's own clocks and without any timer. */
  isLeader(): boolean {
    if (this.#held === undefined || this.#lost.signal.aborted) return false;
    const { clock, renewDeadline } = this.#options;
    const silent = Math.max(clock.monotonic() - this.#held.at, clock.now().getTime() - this.#held.wallClock);
    if (silent < renewDeadline) return true;
    this.#lose(`it was not renewed for ${Math.round(silent)} ms`);
    return false;
  }

  /** Aborted with `TEMPER_LEADERSHIP_LOST` when the lease was held and is lost. The process then has to end. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Resolves when this process leads; rejects with the reason of the signal. */
  elected(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.isLeader()) {
        resolve();
        return;
      }
      const done = (): void => {
        signal.removeEventListener('abort', aborted);
        resolve();
      };
      const aborted = (): void => {
        this.#waiting.delete(done);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.#waiting.add(done);
    });
  }

  /** A second call does nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Stops and gives the lease back, so that another leads at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const led = this.isLeader();
    // Before the lease is given back: from then on another one may write.
    this.#held = undefined;
    this.#show(0);
    if (led) await this.#release();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted && !this.#lost.signal.aborted) {
      const led = this.#held !== undefined;
      try {
        await this.#takeOrRenew(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!isTaken(error)) log.warn({ lease: this.#options.name, error }, 'the lease could not be read or written');
      }
      // Asking is what notices that the time is over.
      if (led && !this.isLeader()) return;
      try {
        await clock.sleep(this.#pause(), signal);
      } catch (reason) {
        if (signal.aborted) return;
        throw reason;
      }
    }
  }

  /** The leader renews at a steady pace; a candidate looks again when the lease it saw may be over, if that is sooner. */
  #pause(): number {
    const { clock, retryPeriod, renewDeadline, random } = this.#options;
    const now = clock.monotonic();
    if (this.#held !== undefined) return Math.max(0, Math.min(retryPeriod, this.#held.at + renewDeadline - now));
    const pause = retryPeriod / (1 + (JITTER - 1) * random());
    const over = this.#observed === undefined ? pause : expiryOf(this.#observed) - now;
    return over > 0 ? Math.min(pause, over) : pause;
  }

  async #takeOrRenew(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(this.#patience())]);
    const begun: Held = { at: clock.monotonic(), wallClock: clock.now().getTime() };
    const observation = await this.#observe(limited);
    if (observation === undefined) return this.#create(begun, limited);
    const { record } = observation;
    const mine = record.holder === this.#options.identity;
    if (!mine && record.holder !== '' && clock.monotonic() < expiryOf(observation)) {
      if (this.#held !== undefined) this.#lose(`${record.holder} holds it`);
      return;
    }
    if (this.#held !== undefined && !mine) {
      this.#lose('somebody emptied it');
      return;
    }
    await this.#write(record, begun, limited);
  }

  /** Milliseconds for one try: a call that hangs leaves time for another one, and that the time is over is noticed when it is. */
  #patience(): number {
    const { clock, renewDeadline } = this.#options;
    const patience = Math.max(1_000, renewDeadline / 2);
    if (this.#held === undefined) return patience;
    return Math.max(0, Math.floor(Math.min(patience, this.#held.at + renewDeadline - clock.monotonic())));
  }

  /** The leader knows what it wrote and saves the reading; what it does not know of makes its write a conflict. */
  async #observe(signal: AbortSignal): Promise<Observation | undefined> {
    if (this.#held !== undefined && this.#observed !== undefined) return this.#observed;
    const { client, clock, namespace, name, leaseDuration } = this.#options;
    const lease = await client.get(LEASES, { namespace, name }, signal);
    if (lease === undefined) {
      this.#observed = undefined;
      return undefined;
    }
    const record = readLease(lease, leaseDuration);
    if (this.#observed?.record.resourceVersion !== record.resourceVersion) {
      this.#observed = { record, since: clock.monotonic() };
    }
    return this.#observed;
  }

  async #create(begun: Held, signal: AbortSignal): Promise<void> {
    const { client, clock, namespace, name, identity, leaseDuration } = this.#options;
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name },
      spec: leaseSpec.taken(identity, leaseDuration, clock.now(), 0),
    };
    this.#hold(readLease(await client.create(LEASES, body, signal), leaseDuration), begun);
  }

  async #write(record: LeaseRecord, begun: Held, signal: AbortSignal): Promise<void> {
    const { client, clock, namespace, name, identity, leaseDuration } = this.#options;
    const now = clock.now();
    const spec =
      this.#held === undefined
        ? leaseSpec.taken(identity, leaseDuration, now, record.transitions + 1)
        : leaseSpec.renewed(now);
    const patch = { metadata: { resourceVersion: record.resourceVersion }, spec };
    try {
      const lease = await client.patch(LEASES, { namespace, name }, patch, signal);
      this.#hold(readLease(lease, leaseDuration), begun);
    } catch (error) {
      // It is not what it was: the next look reads it. An answer that was lost on the way looks the same.
      if (this.#held !== undefined) this.#observed = undefined;
      throw error;
    }
  }

  #hold(record: LeaseRecord, begun: Held): void {
    // Asked before the time is extended: after a stall another one may have led in between.
    if (this.#lost.signal.aborted || (this.#held !== undefined && !this.isLeader())) return;
    const first = this.#held === undefined;
    this.#observed = { record, since: this.#options.clock.monotonic() };
    this.#held = begun;
    if (!first) return;
    this.#options.log.info({ lease: this.#options.name, identity: this.#options.identity }, 'this process leads');
    this.#show(1);
    for (const done of this.#waiting) done();
    this.#waiting.clear();
  }

  #lose(why: string): void {
    if (this.#lost.signal.aborted) return;
    this.#held = undefined;
    this.#show(0);
    const { name, log } = this.#options;
    log.error({ lease: name }, `the lease is lost: ${why}`);
    this.#lost.abort(new TemperError('TEMPER_LEADERSHIP_LOST', `lease ${name}: ${why}; another process may lead now`));
  }

  async #release(): Promise<void> {
    const { client, clock, namespace, name, log } = this.#options;
    const resourceVersion = this.#observed?.record.resourceVersion;
    if (resourceVersion === undefined) return;
    const patch = { metadata: { resourceVersion }, spec: leaseSpec.released(clock.now()) };
    try {
      await client.patch(LEASES, { namespace, name }, patch, AbortSignal.timeout(5_000));
    } catch (error) {
      log.warn({ lease: name, error }, 'the lease could not be given back; it ends by itself');
    }
  }

  #show(value: 0 | 1): void {
    this.#options.metrics.gauge('leader_election_master_status', { name: this.#options.name }, value);
  }
}

function expiryOf({ record, since }: Observation): number {
  return since + record.duration;
}

/** Two wanted it at once and the other one has it: what an election is for. */
function isTaken(error: unknown): boolean {
  return error instanceof ApiError && error.status === CONFLICT;
}
