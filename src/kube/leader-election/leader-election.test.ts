import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { isTemperError } from '../../lib/errors.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { ApiError } from '../client/kube-client.ts';
import { FakeClock, flushPromises } from '../../lib/fake-clock.testing.ts';
import { LeaderElection, type LeaderElectionOptions } from './leader-election.ts';
import { RecordingMetrics } from '../metrics.testing.ts';

interface StoredLease {
  metadata: { name: string; namespace: string; resourceVersion: string };
  spec: Record<string, unknown>;
}

/** A fake API with one Lease and optimistic locking; unreachable on demand. */
class FakeLeaseApi {
  lease: StoredLease | undefined;
  reachable = true;
  writes = 0;
  /** The next write succeeds and its response is lost. */
  loseResponse = false;
  #version = 0;

  readonly client = {
    get: async () => this.#respond(structuredClone(this.lease)),
    create: async (_type: unknown, object: object) => {
      this.#respond(undefined);
      if (this.lease !== undefined) throw new ApiError(409, 'AlreadyExists', 'the Lease exists');
      return this.#store((object as StoredLease).spec);
    },
    patch: async (_type: unknown, _ref: unknown, patch: object) => {
      this.#respond(undefined);
      const { metadata, spec } = patch as StoredLease;
      if (this.lease === undefined) throw new ApiError(404, 'NotFound', 'the Lease does not exist');
      if (metadata.resourceVersion !== this.lease.metadata.resourceVersion)
        throw new ApiError(409, 'Conflict', 'changed');
      return this.#store({ ...this.lease.spec, ...spec });
    },
  } as unknown as LeaderElectionOptions['client'];

  #respond<T>(value: T): T {
    if (!this.reachable) throw new Error('unreachable');
    return value;
  }

  #store(spec: Record<string, unknown>): StoredLease {
    this.#version += 1;
    this.writes += 1;
    this.lease = { metadata: { name: 'l', namespace: 'n', resourceVersion: `v${this.#version}` }, spec };
    if (this.loseResponse) {
      this.loseResponse = false;
      throw new Error('the response was lost');
    }
    return structuredClone(this.lease);
  }
}

function aCandidate(leases: FakeLeaseApi, identity: string, clock: FakeClock, random = () => 0) {
  const metrics = new RecordingMetrics();
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLogger({ level: 'info', destination, secrets: createSecretRedactor() });
  const options = { client: leases.client, clock, log, metrics, random, namespace: 'n', name: 'l', identity };
  const election = new LeaderElection(options);
  return { election, metrics, lines };
}

describe('the leader election', () => {
  it('a candidate creates the Lease, becomes leader and renews every two seconds', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const { election, metrics } = aCandidate(leases, 'one', clock);
    assert.equal(election.isLeader(), false);
    election.start();
    await election.elected(NEVER_ABORTED);
    assert.equal(election.isLeader(), true);
    assert.equal(metrics.gauges['leader_election_master_status'], 1);
    assert.deepEqual(leases.lease?.spec, {
      holderIdentity: 'one',
      leaseDurationSeconds: 15,
      acquireTime: '1970-01-01T00:00:00.000000Z',
      renewTime: '1970-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await clock.advance(60_000);
    assert.equal(leases.writes, 31);
    assert.equal(leases.lease?.spec['renewTime'], '1970-01-01T00:01:00.000000Z');
    assert.equal(election.isLeader(), true);
    await election[Symbol.asyncDispose]();
    const transitions = (metric: string): number | undefined =>
      metrics.counts[`leader_election_transitions_total{${metric}}`];
    assert.deepEqual(['acquired', 'released', 'lost'].map(transitions), [1, 1, 0]);
  });

  it('a disposed leader releases the Lease, and another candidate becomes leader within three seconds', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const one = aCandidate(leases, 'one', clock);
    const two = aCandidate(leases, 'two', clock);
    one.election.start();
    await flushPromises();
    two.election.start();
    await clock.advance(33_333);
    assert.equal(two.election.isLeader(), false);
    await one.election[Symbol.asyncDispose]();
    assert.equal(one.election.isLeader(), false);
    assert.equal(leases.lease?.spec['holderIdentity'], '');
    assert.equal(one.election.lost.aborted, false);
    const released = clock.monotonic();
    await clock.advance(2_000);
    assert.equal(two.election.isLeader(), true);
    assert.ok(clock.monotonic() - released <= 3_000);
    assert.equal(leases.lease?.spec['leaseTransitions'], 1);
    await two.election[Symbol.asyncDispose]();
  });

  it('a candidate takes over the Lease after it was unchanged for the lease duration on its own clock', async () => {
    const leases = new FakeLeaseApi();
    const dead = new FakeClock();
    const { election: holder } = aCandidate(leases, 'dead', dead);
    holder.start();
    await flushPromises();
    // The holder's clock is independent and never moves again: the holder is dead.
    const clock = new FakeClock();
    const { election } = aCandidate(leases, 'two', clock);
    election.start();
    await clock.advance(14_999);
    assert.equal(election.isLeader(), false);
    await clock.advance(1);
    assert.equal(election.isLeader(), true);
    await election[Symbol.asyncDispose]();
    await holder[Symbol.asyncDispose]();
  });

  it('there are never two leaders while candidates cannot reach the server', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const random = (): number => 0.7;
    const separate = new FakeLeaseApi();
    Object.defineProperty(separate, 'lease', {
      get: () => leases.lease,
      set: (lease: StoredLease) => {
        leases.lease = lease;
      },
    });
    const one = aCandidate(leases, 'one', clock, random);
    one.election.start();
    await clock.advance(9_000);
    const two = aCandidate(separate, 'two', clock, random);
    two.election.start();
    await clock.advance(5_000);
    leases.reachable = false;
    let took = -1;
    for (let step = 0; step < 200 && took < 0; step += 1) {
      await clock.advance(100);
      assert.ok(!(one.election.isLeader() && two.election.isLeader()), 'two leaders at once');
      if (two.election.isLeader()) took = step * 100;
    }
    assert.ok(took >= 0 && took <= 17_000, `taken over after ${took} ms`);
    assert.equal(one.election.isLeader(), false);
    assert.ok(isTemperError(one.election.lost.reason, 'TEMPER_LEADERSHIP_LOST'));
    assert.equal(one.metrics.gauges['leader_election_master_status'], 0);
    assert.equal(one.metrics.counts['leader_election_transitions_total{lost}'], 1);
    leases.reachable = true;
    await clock.advance(60_000);
    assert.equal(one.election.isLeader(), false, 'a process that lost leadership never becomes leader again');
    await two.election[Symbol.asyncDispose]();
    await one.election[Symbol.asyncDispose]();
    assert.equal(leases.lease?.spec['holderIdentity'], '');
  });

  it('the leader survives an outage of the server that is shorter than the renew deadline', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const { election, lines } = aCandidate(leases, 'one', clock);
    election.start();
    await clock.advance(4_000);
    leases.reachable = false;
    await clock.advance(7_000);
    assert.equal(election.isLeader(), true);
    leases.reachable = true;
    await clock.advance(60_000);
    assert.equal(election.isLeader(), true);
    assert.match(lines.join(''), /could not be read or written/);
    await election[Symbol.asyncDispose]();
  });

  it('the leader recognises its own renewal whose response was lost', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const { election } = aCandidate(leases, 'one', clock);
    election.start();
    await clock.advance(3_000);
    leases.loseResponse = true;
    await clock.advance(20_000);
    assert.equal(election.isLeader(), true);
    await election[Symbol.asyncDispose]();
    assert.equal(leases.lease?.spec['holderIdentity'], '');
  });

  it('isLeader returns false directly after the event loop was blocked', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const { election } = aCandidate(leases, 'one', clock);
    election.start();
    await flushPromises();
    clock.skip(9_999);
    assert.equal(election.isLeader(), true);
    clock.skip(1);
    assert.equal(election.isLeader(), false);
    assert.equal(election.lost.aborted, true);
    const { writes } = leases;
    await clock.advance(60_000);
    await election[Symbol.asyncDispose]();
    assert.equal(leases.writes, writes, 'it neither renews nor releases the Lease');
  });

  it('isLeader returns false after the machine was suspended', async () => {
    const leases = new FakeLeaseApi();
    const clock = new FakeClock();
    const { election } = aCandidate(leases, 'one', clock);
    election.start();
    await flushPromises();
    assert.equal(election.isLeader(), true);
    clock.suspend(3_600_000);
    assert.equal(election.isLeader(), false);
    await election[Symbol.asyncDispose]();
  });

  it('the leader loses leadership when another process takes or clears the Lease', async () => {
    for (const holderIdentity of ['intruder', '']) {
      const leases = new FakeLeaseApi();
      const clock = new FakeClock();
      const { election } = aCandidate(leases, 'one', clock);
      election.start();
      await flushPromises();
      assert.ok(leases.lease !== undefined);
      leases.lease = {
        metadata: { ...leases.lease.metadata, resourceVersion: 'other' },
        spec: { ...leases.lease.spec, holderIdentity },
      };
      await clock.advance(4_000);
      assert.equal(election.isLeader(), false);
      assert.equal(election.lost.aborted, true);
      await election[Symbol.asyncDispose]();
      assert.equal(leases.lease.spec['holderIdentity'], holderIdentity);
    }
  });

  it('elected resolves when the process becomes leader, or rejects when its signal aborts', async () => {
    const leases = new FakeLeaseApi();
    const { election } = aCandidate(leases, 'one', new FakeClock());
    const controller = new AbortController();
    const aborted = election.elected(controller.signal);
    const elected = election.elected(NEVER_ABORTED);
    controller.abort(new Error('enough'));
    await assert.rejects(aborted, /enough/);
    election.start();
    await elected;
    await election[Symbol.asyncDispose]();
  });

  it('inconsistent lease times are rejected', () => {
    const clock = new FakeClock();
    const { client } = new FakeLeaseApi();
    const metrics = new RecordingMetrics();
    const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
    const base = { client, clock, log, metrics, random: () => 0, namespace: 'n', name: 'l', identity: 'one' };
    assert.throws(() => new LeaderElection({ ...base, leaseDurationMs: 10_000 }), RangeError);
    assert.throws(() => new LeaderElection({ ...base, retryPeriodMs: 9_000 }), RangeError);
  });
});
