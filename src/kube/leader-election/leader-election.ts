import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { ApiError, type KubeClient } from '../client/kube-client.ts';
import { LEASES, type LeaseRecord, leaseSpec, readLease } from './lease.ts';
import { Latch } from '../../lib/async/latch.ts';
import type { Metrics } from '../metrics.ts';

export interface LeaderElectionOptions {
  /** Must not be a client whose writes depend on this election (`isLeader`). */
  client: Pick<KubeClient, 'get' | 'create' | 'patch'>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Namespace and name of the Lease. */
  namespace: string;
  name: string;
  /** Unique per process, e.g. `<hostname>_<uuid>`. */
  identity: string;
  /** As LeaseDuration, RenewDeadline and RetryPeriod in client-go; milliseconds. Defaults: 15,000, 10,000 and 2,000. */
  leaseDurationMs?: number;
  renewDeadlineMs?: number;
  retryPeriodMs?: number;
}

const DEFAULTS = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
/** Candidates retry up to 20 % earlier, at random, and never later: jitter must not delay a handover. */
const JITTER = 1.2;
/**
 * Attempts of a candidate per `retryPeriod`; one in client-go. Each is one read while the Lease is held. The later a candidate sees the last
 * renewal of a leader that ended, the later it takes its place.
 */
const CANDIDATE_ATTEMPTS = 2;
const MIN_CALL_TIMEOUT_MS = 1_000;
const RELEASE_TIMEOUT_MS = 5_000;
const CONFLICT = 409;

/** The Lease as last read, and the monotonic time at which this version was first observed. */
interface Observation {
  readonly observedRecord: LeaseRecord;
  readonly observedTime: number;
}

/** The start of the last successful acquire or renewal, by two clocks: the monotonic clock stops while the machine is suspended. */
interface Renewal {
  readonly renewTime: number;
  readonly wallClock: number;
}

/**
 * Elects one of several processes as leader, by a Lease, as client-go's LeaderElector does. A candidate decides that the holder is dead by how
 * long it has observed the Lease unchanged on its own clock, never by the times in the Lease. A process that has lost leadership never becomes
 * leader again: it must exit. `#acquire`, `#renew`, `#tryAcquireOrRenew` and `#release` are the methods of client-go with these names.
 *
 *                    acquired: the Lease was free, released or expired
 *     ┌───────────┐ ──────────────────────────────────────────────────► ┌────────┐ ──┐ renewed
 *     │ candidate │                                                     │ leader │   │ every retryPeriod
 *     └───────────┘ ──┐ Lease held by another process:                  └────────┘ ◄─┘
 *           ▲         │ retry after retryPeriod / 2, or when it expires  │      │
 *           └─────────┘                                      disposed:   │      │ not renewed within renewDeadline, or
 *                                              release the Lease, so     │      │ the Lease has another holder, or none
 *                                              that another process      ▼      ▼
 *                                              leads immediately    released   lost (final; `lost` aborts)
 *
 * `#renewal` is set exactly while this process is the leader. `isLeader()` checks the deadline itself, without a timer, so that a process whose
 * event loop was blocked or whose machine was suspended does not write after another process may have become leader.
 */
export class LeaderElection implements AsyncDisposable {
  readonly #options: LeaderElectionOptions & typeof DEFAULTS;
  readonly #stopping = new AbortController();
  readonly #lost = new AbortController();
  readonly #elected = new Latch();
  #running: Promise<void> | undefined;
  #observed: Observation | undefined;
  #renewal: Renewal | undefined;

  /** Throws RangeError unless leaseDuration > renewDeadline > 1.2 × retryPeriod. */
  constructor(options: LeaderElectionOptions) {
    this.#options = { ...DEFAULTS, ...options };
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = this.#options;
    if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs * JITTER) {
      throw new RangeError('leaseDuration > renewDeadline > 1.2 × retryPeriod must hold');
    }
    this.#reportStatus(0);
    for (const transition of ['acquired', 'released', 'lost'] as const) this.#countTransition(transition, 0);
  }

  /** False as soon as another process might be the leader, by the clocks of this process and without any timer. */
  isLeader(): boolean {
    if (this.#renewal === undefined || this.#lost.signal.aborted) return false;
    const { clock, renewDeadlineMs } = this.#options;
    const elapsed = Math.max(
      clock.monotonic() - this.#renewal.renewTime,
      clock.now().getTime() - this.#renewal.wallClock,
    );
    if (elapsed < renewDeadlineMs) return true;
    this.#loseLeadership(`it was not renewed for ${Math.round(elapsed)} ms`);
    return false;
  }

  /** Aborts with `TEMPER_LEADERSHIP_LOST` when this process was the leader and lost the Lease. The process must then exit. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Resolves when this process becomes the leader; rejects with the reason of the signal when it aborts, or of `lost` after a loss. */
  elected(signal: AbortSignal): Promise<void> {
    return this.#lost.signal.aborted ? Promise.reject(this.#lost.signal.reason as Error) : this.#elected.opened(signal);
  }

  /** A second call does nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Stops and releases the Lease, so that another process can become leader immediately. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const wasLeader = this.isLeader();
    // Must precede the release: after it another process may write.
    this.#renewal = undefined;
    this.#reportStatus(0);
    if (!wasLeader) return;
    this.#countTransition('released');
    await this.#release();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    if (await this.#acquire(signal)) await this.#renew(signal);
  }

  /** Tries to acquire the Lease until this process is the leader. False when the signal aborts first. */
  async #acquire(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      await this.#attempt(signal);
      if (this.#renewal !== undefined) return true;
      await this.#sleep(this.#acquireDelay(), signal);
    }
    return false;
  }

  /** Renews the Lease until this process loses it or the signal aborts. */
  async #renew(signal: AbortSignal): Promise<void> {
    // `isLeader` also detects that the renew deadline has passed. A call of it may have detected that during the sleep.
    while (this.isLeader()) {
      await this.#sleep(this.#renewDelay(), signal);
      if (signal.aborted || this.#lost.signal.aborted) return;
      await this.#attempt(signal);
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { log, name } = this.#options;
    try {
      await this.#tryAcquireOrRenew(signal);
    } catch (error) {
      if (!signal.aborted && !isConflict(error))
        log.warn({ lease: name, error }, 'the lease could not be read or written');
    }
  }

  async #sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.clock.sleep(milliseconds, signal);
    } catch (reason) {
      if (!signal.aborted) throw reason;
    }
  }

  /** A candidate retries after half of `retryPeriod`, or at the expiry of the observed Lease when that is sooner. */
  #acquireDelay(): number {
    const { clock, retryPeriodMs, random } = this.#options;
    const delay = retryPeriodMs / CANDIDATE_ATTEMPTS / (1 + (JITTER - 1) * random());
    const untilExpiry = this.#observed === undefined ? delay : expiryOf(this.#observed) - clock.monotonic();
    return untilExpiry > 0 ? Math.min(delay, untilExpiry) : delay;
  }

  /** The leader renews at a fixed interval, and once more before the renew deadline. */
  #renewDelay(): number {
    const { clock, retryPeriodMs, renewDeadlineMs } = this.#options;
    if (this.#renewal === undefined) return retryPeriodMs;
    return Math.max(0, Math.min(retryPeriodMs, this.#renewal.renewTime + renewDeadlineMs - clock.monotonic()));
  }

  async #tryAcquireOrRenew(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(this.#callTimeoutMs())]);
    const started: Renewal = { renewTime: clock.monotonic(), wallClock: clock.now().getTime() };
    const observation = await this.#observe(limited);
    if (observation === undefined) return this.#create(started, limited);
    const { observedRecord: record } = observation;
    const isHolder = record.holder === this.#options.identity;
    if (!isHolder && record.holder !== '' && clock.monotonic() < expiryOf(observation)) {
      if (this.#renewal !== undefined) this.#loseLeadership(`${record.holder} holds it`);
      return;
    }
    if (this.#renewal !== undefined && !isHolder) {
      this.#loseLeadership('another process cleared its holder');
      return;
    }
    await this.#write(record, started, limited);
  }

  /** The timeout of one attempt: a hanging call leaves time for another attempt, and ends no later than the renew deadline. */
  #callTimeoutMs(): number {
    const { clock, renewDeadlineMs } = this.#options;
    const timeoutMs = Math.max(MIN_CALL_TIMEOUT_MS, renewDeadlineMs / 2);
    if (this.#renewal === undefined) return timeoutMs;
    return Math.max(0, Math.floor(Math.min(timeoutMs, this.#renewal.renewTime + renewDeadlineMs - clock.monotonic())));
  }

  /** The leader does not read the Lease: it knows what it wrote, and a write by another process makes its own next write a conflict. */
  async #observe(signal: AbortSignal): Promise<Observation | undefined> {
    if (this.#renewal !== undefined && this.#observed !== undefined) return this.#observed;
    const { client, clock, namespace, name, leaseDurationMs } = this.#options;
    const lease = await client.get(LEASES, { namespace, name }, signal);
    if (lease === undefined) {
      this.#observed = undefined;
      return undefined;
    }
    const record = readLease(lease, leaseDurationMs);
    if (this.#observed?.observedRecord.resourceVersion !== record.resourceVersion) {
      this.#observed = { observedRecord: record, observedTime: clock.monotonic() };
    }
    return this.#observed;
  }

  async #create(started: Renewal, signal: AbortSignal): Promise<void> {
    const { client, clock, namespace, name, identity, leaseDurationMs } = this.#options;
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name },
      spec: leaseSpec.acquired(identity, leaseDurationMs, clock.now(), 0),
    };
    this.#setLeader(readLease(await client.create(LEASES, body, signal), leaseDurationMs), started);
  }

  async #write(record: LeaseRecord, started: Renewal, signal: AbortSignal): Promise<void> {
    const { client, clock, namespace, name, identity, leaseDurationMs } = this.#options;
    const now = clock.now();
    const spec =
      this.#renewal === undefined
        ? leaseSpec.acquired(identity, leaseDurationMs, now, record.transitions + 1)
        : leaseSpec.renewed(now);
    const patch = { metadata: { resourceVersion: record.resourceVersion }, spec };
    try {
      const lease = await client.patch(LEASES, { namespace, name }, patch, signal);
      this.#setLeader(readLease(lease, leaseDurationMs), started);
    } catch (error) {
      // The Lease may have changed: another process wrote it, or this write succeeded and its response was lost. The next attempt reads it.
      if (this.#renewal !== undefined) this.#observed = undefined;
      throw error;
    }
  }

  #setLeader(record: LeaseRecord, started: Renewal): void {
    // `isLeader` must run before the renewal is recorded: during a stall of this process another process may have been the leader.
    if (this.#lost.signal.aborted || (this.#renewal !== undefined && !this.isLeader())) return;
    const isNewLeader = this.#renewal === undefined;
    this.#observed = { observedRecord: record, observedTime: this.#options.clock.monotonic() };
    this.#renewal = started;
    if (!isNewLeader) return;
    this.#options.log.info({ lease: this.#options.name, identity: this.#options.identity }, 'became leader');
    this.#reportStatus(1);
    this.#countTransition('acquired');
    this.#elected.open();
  }

  #loseLeadership(reason: string): void {
    if (this.#lost.signal.aborted) return;
    this.#renewal = undefined;
    this.#reportStatus(0);
    this.#countTransition('lost');
    const { name, log } = this.#options;
    log.error({ lease: name }, `leadership lost: ${reason}`);
    this.#lost.abort(
      new TemperError('TEMPER_LEADERSHIP_LOST', `lease ${name}: ${reason}; another process may be the leader now`),
    );
  }

  async #release(): Promise<void> {
    const { client, clock, namespace, name, log } = this.#options;
    const resourceVersion = this.#observed?.observedRecord.resourceVersion;
    if (resourceVersion === undefined) return;
    const patch = { metadata: { resourceVersion }, spec: leaseSpec.released(clock.now()) };
    try {
      await client.patch(LEASES, { namespace, name }, patch, AbortSignal.timeout(RELEASE_TIMEOUT_MS));
    } catch (error) {
      log.warn({ lease: name, error }, 'the lease could not be released; it expires by itself');
    }
  }

  #countTransition(transition: 'acquired' | 'released' | 'lost', by = 1): void {
    this.#options.metrics.count('leader_election_transitions_total', { name: this.#options.name, transition }, by);
  }

  #reportStatus(value: 0 | 1): void {
    this.#options.metrics.gauge('leader_election_master_status', { name: this.#options.name }, value);
  }
}

function expiryOf({ observedRecord, observedTime }: Observation): number {
  return observedTime + observedRecord.durationMs;
}

/** Another process wrote the Lease first; this is normal in an election. */
function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === CONFLICT;
}
