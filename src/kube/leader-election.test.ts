import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { createLogger } from '../telemetry/log.ts';
import { createSecrets } from '../telemetry/secrets.ts';
import { ApiError } from './client.ts';
import { HeldClock, settle } from './held-clock.testing.ts';
import { LeaderElection, type LeaderElectionOptions } from './leader-election.ts';
import { KeptMetrics } from './metrics.testing.ts';

interface Lease {
  metadata: { name: string; namespace: string; resourceVersion: string };
  spec: Record<string, unknown>;
}

/** One Lease behind an API that compares versions; out of reach when told. */
class Leases {
  lease: Lease | undefined;
  reachable = true;
  writes = 0;
  /** The next write is done and its answer lost. */
  loseAnswer = false;
  #version = 0;

  readonly client = {
    get: async () => this.#answer(structuredClone(this.lease)),
    create: async (_type: unknown, object: object) => {
      this.#answer(undefined);
      if (this.lease !== undefined) throw new ApiError(409, 'AlreadyExists', 'there is one');
      return this.#store((object as Lease).spec);
    },
    patch: async (_type: unknown, _ref: unknown, patch: object) => {
      this.#answer(undefined);
      const { metadata, spec } = patch as Lease;
      if (this.lease === undefined) throw new ApiError(404, 'NotFound', 'there is none');
      if (metadata.resourceVersion !== this.lease.metadata.resourceVersion)
        throw new ApiError(409, 'Conflict', 'changed');
      return this.#store({ ...this.lease.spec, ...spec });
    },
  } as unknown as LeaderElectionOptions['client'];

  #answer<T>(value: T): T {
    if (!this.reachable) throw new Error('out of reach');
    return value;
  }

  #store(spec: Record<string, unknown>): Lease {
    this.#version += 1;
    this.writes += 1;
    this.lease = { metadata: { name: 'l', namespace: 'n', resourceVersion: `v${this.#version}` }, spec };
    if (this.loseAnswer) {
      this.loseAnswer = false;
      throw new Error('the answer was lost');
    }
    return structuredClone(this.lease);
  }
}

function aCandidate(leases: Leases, identity: string, clock: HeldClock, random = () => 0) {
  const metrics = new KeptMetrics();
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLogger({ level: 'info', destination, secrets: createSecrets() });
  const options = { client: leases.client, clock, log, metrics, random, namespace: 'n', name: 'l', identity };
  const election = new LeaderElection(options);
  return { election, metrics, lines };
}

describe('the election', () => {
  it('makes the Lease, leads and renews every two seconds', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
    const { election, metrics } = aCandidate(leases, 'one', clock);
    assert.equal(election.isLeader(), false);
    election.start();
    await election.elected(new AbortController().signal);
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
  });

  it('gives the Lease back, and another one leads within three seconds', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
    const one = aCandidate(leases, 'one', clock);
    const two = aCandidate(leases, 'two', clock);
    one.election.start();
    await settle();
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

  it('takes a Lease over when its holder was silent for as long as the Lease says, by its own clock', async () => {
    const leases = new Leases();
    const dead = new HeldClock();
    const { election: holder } = aCandidate(leases, 'dead', dead);
    holder.start();
    await settle();
    // Its clock is years off and stands still from here on: it died.
    const clock = new HeldClock();
    const { election } = aCandidate(leases, 'two', clock);
    election.start();
    await clock.advance(14_999);
    assert.equal(election.isLeader(), false);
    await clock.advance(1);
    assert.equal(election.isLeader(), true);
    await election[Symbol.asyncDispose]();
    await holder[Symbol.asyncDispose]();
  });

  it('never has two leaders, however long each of them cannot reach the server', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
    const random = (): number => 0.7;
    const apart = new Leases();
    Object.defineProperty(apart, 'lease', {
      get: () => leases.lease,
      set: (lease: Lease) => {
        leases.lease = lease;
      },
    });
    const one = aCandidate(leases, 'one', clock, random);
    one.election.start();
    await clock.advance(9_000);
    const two = aCandidate(apart, 'two', clock, random);
    two.election.start();
    await clock.advance(5_000);
    leases.reachable = false;
    let took = -1;
    for (let step = 0; step < 200 && took < 0; step += 1) {
      await clock.advance(100);
      assert.ok(!(one.election.isLeader() && two.election.isLeader()), 'two lead at once');
      if (two.election.isLeader()) took = step * 100;
    }
    assert.ok(took >= 0 && took <= 17_000, `taken over after ${took} ms`);
    assert.equal(one.election.isLeader(), false);
    assert.ok(isTemperError(one.election.lost.reason, 'TEMPER_LEADERSHIP_LOST'));
    assert.equal(one.metrics.gauges['leader_election_master_status'], 0);
    leases.reachable = true;
    await clock.advance(60_000);
    assert.equal(one.election.isLeader(), false, 'who lost it never leads again');
    await two.election[Symbol.asyncDispose]();
    await one.election[Symbol.asyncDispose]();
    assert.equal(leases.lease?.spec['holderIdentity'], '');
  });

  it('survives a server that is away for less than the deadline', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
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

  it('does not take a renewal whose answer was lost for the work of another one', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
    const { election } = aCandidate(leases, 'one', clock);
    election.start();
    await clock.advance(3_000);
    leases.loseAnswer = true;
    await clock.advance(20_000);
    assert.equal(election.isLeader(), true);
    await election[Symbol.asyncDispose]();
    assert.equal(leases.lease?.spec['holderIdentity'], '');
  });

  it('does not lead after the event loop stood still, before anything else runs', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
    const { election } = aCandidate(leases, 'one', clock);
    election.start();
    await settle();
    clock.stall(9_999);
    assert.equal(election.isLeader(), true);
    clock.stall(1);
    assert.equal(election.isLeader(), false);
    assert.equal(election.lost.aborted, true);
    const { writes } = leases;
    await clock.advance(60_000);
    await election[Symbol.asyncDispose]();
    assert.equal(leases.writes, writes, 'it neither renews nor gives back what is not its own');
  });

  it('does not lead after the machine slept', async () => {
    const leases = new Leases();
    const clock = new HeldClock();
    const { election } = aCandidate(leases, 'one', clock);
    election.start();
    await settle();
    assert.equal(election.isLeader(), true);
    clock.suspend(3_600_000);
    assert.equal(election.isLeader(), false);
    await election[Symbol.asyncDispose]();
  });

  it('ends when somebody takes or empties the Lease of one who lives', async () => {
    for (const holderIdentity of ['intruder', '']) {
      const leases = new Leases();
      const clock = new HeldClock();
      const { election } = aCandidate(leases, 'one', clock);
      election.start();
      await settle();
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

  it('has who waits for it wait until it leads, or for his own signal', async () => {
    const leases = new Leases();
    const { election } = aCandidate(leases, 'one', new HeldClock());
    const given = new AbortController();
    const impatient = election.elected(given.signal);
    const patient = election.elected(new AbortController().signal);
    given.abort(new Error('enough'));
    await assert.rejects(impatient, /enough/);
    election.start();
    await patient;
    await election[Symbol.asyncDispose]();
  });

  it('refuses times that leave no room for one another', () => {
    const clock = new HeldClock();
    const { client } = new Leases();
    const metrics = new KeptMetrics();
    const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecrets() });
    const base = { client, clock, log, metrics, random: () => 0, namespace: 'n', name: 'l', identity: 'one' };
    assert.throws(() => new LeaderElection({ ...base, leaseDuration: 10_000 }), RangeError);
    assert.throws(() => new LeaderElection({ ...base, retryPeriod: 9_000 }), RangeError);
  });
});
