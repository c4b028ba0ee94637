import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { Ledger } from '../../ledger/port.ts';
import type { DocumentStore } from '../jetstream/document-store.ts';
import { openSharedLedger, type SharedLedger } from './ledger.ts';

const LIMIT = 1_000;

/** One bucket in memory. Holds the next write until `release`, or fails calls of its server. */
class MemoryStore implements DocumentStore {
  readonly documents = new Map<string, { value: Json; revision: number }>();
  #gate: Promise<void> = Promise.resolve();
  /** The next write is stored, its response is lost, and so are the reads of the further attempts. */
  losesResponse = false;
  #failingReads = 0;
  writes = 0;
  /** Writes that have not ended. */
  pending = 0;

  /** Holds writes until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return resolve;
  }

  async get(key: string) {
    if (this.#failingReads > 0) {
      this.#failingReads -= 1;
      throw new Error('the server is unreachable');
    }
    return structuredClone(this.documents.get(key));
  }

  async write(key: string, value: Json, revision: number): Promise<number | undefined> {
    this.pending += 1;
    await this.#gate;
    this.pending -= 1;
    if ((this.documents.get(key)?.revision ?? 0) !== revision) return undefined;
    this.writes += 1;
    this.documents.set(key, { value: structuredClone(value), revision: revision + 1 });
    if (!this.losesResponse) return revision + 1;
    this.losesResponse = false;
    this.#failingReads = 3;
    throw new Error('the response was lost');
  }
}

describe('the shared ledger', () => {
  let clock: FakeClock;
  let store: MemoryStore;
  let shared: SharedLedger;
  let ledger: Ledger;
  let calls = 0;

  beforeEach(() => {
    clock = new FakeClock();
    store = new MemoryStore();
    let lastId = 0;
    const ids = { next: (prefix: string) => `${prefix}-${(lastId += 1)}` };
    shared = openSharedLedger({ store, clock, ids, random: () => 0, onError: () => {} });
    const quotas = { tokensPerHour: LIMIT };
    ledger = shared.ledger([{ name: 'agent/u', quotas, prefix: 'spec.quotas' } as never]);
  });
  afterEach(async () => {
    await whileTimePasses(shared.close());
  });

  const reserve = (inputTokens: number, milliseconds = 60_000) => {
    calls += 1;
    const op = {
      signal: new AbortController().signal,
      deadline: clock.monotonic() + milliseconds,
      key: `call-${calls}`,
    };
    return whileTimePasses(ledger.reserve({ inputTokens }, op));
  };
  /** Moves the clock until the work ends, because a retry waits for the clock. */
  const whileTimePasses = async <T>(work: Promise<T>): Promise<T> => {
    const state = { ended: false };
    const end = () => {
      state.ended = true;
    };
    work.then(end, end);
    while (!state.ended) await clock.advance(10);
    return work;
  };
  const isUnavailable = (error: unknown) => isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE');

  it('a reservation that is granted after its deadline is released, so the quota is free again', async () => {
    const release = store.hold();
    await assert.rejects(reserve(LIMIT, 100), isUnavailable);
    release();
    await clock.advance(0);
    assert.equal(store.writes, 1, 'the write was in flight and is stored');
    const next = await reserve(LIMIT);
    assert.equal(next.granted, true);
  });

  it('a reservation that is granted in time keeps its amount until it is committed', async () => {
    const granted = await reserve(LIMIT);
    assert.equal(granted.granted, true);
    assert.equal((await reserve(1)).granted, false);
    if (granted.granted) await ledger.commit(granted.id, { inputTokens: 400 });
    await clock.advance(5_000);
    assert.equal((await reserve(600)).granted, true);
    assert.equal((await reserve(1)).granted, false);
  });

  it('a change whose response was lost is written again with the same number and charged once', async () => {
    store.losesResponse = true;
    await assert.rejects(reserve(300), isUnavailable);
    assert.equal(store.writes, 1);
    const granted = await reserve(300);
    assert.equal(granted.granted, true);
    if (granted.granted) await ledger.commit(granted.id, { inputTokens: 300 });
    await clock.advance(5_000);
    assert.equal((await ledger.usage()).hour.inputTokens, 300);
    assert.equal((await reserve(LIMIT - 300)).granted, true);
  });

  const both = (agentLimit: number, policyLimit: number) =>
    shared.ledger([
      { name: 'agent/both', quotas: { tokensPerHour: agentLimit }, prefix: 'spec.quotas.' },
      { name: 'policy/both', quotas: { tokensPerHour: policyLimit }, prefix: 'policy ' },
    ]);
  const op = () => {
    calls += 1;
    return { signal: new AbortController().signal, deadline: clock.monotonic() + 60_000, key: `call-${calls}` };
  };
  const heldOf = async (account: string) => (await shared.report(account)).windows.hour.held.tokens;

  it('the accounts of the agent and of its policy are reserved at once', async () => {
    const release = store.hold();
    const reservation = both(LIMIT, LIMIT).reserve({ inputTokens: 100 }, op());
    await clock.advance(0);
    assert.equal(store.pending, 2, 'both writes are in flight');
    release();
    assert.equal((await whileTimePasses(reservation)).granted, true);
  });

  it('a denial by either account releases the other one', async () => {
    for (const [agentLimit, policyLimit, quota] of [
      [50, LIMIT, 'spec.quotas.tokensPerHour'],
      [LIMIT, 50, 'policy tokensPerHour'],
    ] as const) {
      const answer = await whileTimePasses(both(agentLimit, policyLimit).reserve({ inputTokens: 100 }, op()));
      assert.equal(answer.granted ? '' : answer.quota, quota);
      const full = await whileTimePasses(both(LIMIT, LIMIT).reserve({ inputTokens: LIMIT }, op()));
      assert.ok(full.granted, 'nothing is reserved');
      await both(LIMIT, LIMIT).commit(full.id, {});
      await clock.advance(70_000);
    }
  });

  it('a reservation whose second account cannot be reached releases the first one', async () => {
    const full = await whileTimePasses(both(LIMIT, LIMIT).reserve({ inputTokens: 100 }, op()));
    assert.ok(full.granted);
    await both(LIMIT, LIMIT).commit(full.id, { inputTokens: 100 });
    store.documents.set('policy.both', { value: 'not a record', revision: 99 });
    await assert.rejects(whileTimePasses(both(LIMIT, LIMIT).reserve({ inputTokens: 600 }, op())));
    store.documents.delete('policy.both');
    assert.equal((await whileTimePasses(both(LIMIT, LIMIT).reserve({ inputTokens: 900 }, op()))).granted, true);
  });

  it('an allocation serves further reservations for a minute without a write, and is then released', async () => {
    const large = shared.ledger([{ name: 'agent/large', quotas: { tokensPerHour: 64_000 }, prefix: '' }]);
    const use = async () => {
      const answer = await whileTimePasses(large.reserve({ inputTokens: 100 }, op()));
      assert.ok(answer.granted);
      await large.commit(answer.id, { inputTokens: 100 });
    };
    await use();
    await clock.advance(5_000);
    const writes = store.writes;
    await clock.advance(50_000);
    await use();
    assert.equal(store.writes, writes, 'the allocation sufficed');
    assert.equal(await heldOf('agent/large'), 800, 'a 64th of the limit, less what was used');
    await clock.advance(59_000);
    assert.equal(await heldOf('agent/large'), 800);
    await clock.advance(3_000);
    assert.equal(await heldOf('agent/large'), 0);
  });

  it('a crash leaves the allocation charged until the hour ends', async () => {
    const holder = { name: 'agent/crash', quotas: { tokensPerHour: 64_000 }, prefix: '' };
    const ids = { next: (prefix: string) => `other-${prefix}` };
    let isDead = false;
    const call = <T>(work: () => Promise<T>) => (isDead ? Promise.reject(new Error('the process has ended')) : work());
    const link: DocumentStore = {
      get: (key) => call(() => store.get(key)),
      write: (key, value, revision) => call(() => store.write(key, value, revision)),
    };
    const crashed = openSharedLedger({ store: link, clock, ids, random: () => 0, onError: () => {} });
    const answer = await whileTimePasses(crashed.ledger([holder]).reserve({ inputTokens: 100 }, op()));
    assert.ok(answer.granted);
    isDead = true;
    const remaining = () => whileTimePasses(shared.ledger([holder]).reserve({ inputTokens: 64_000 }, op()));
    const reported = await shared.report('agent/crash');
    assert.equal(reported.windows.hour.held.tokens, 1_000);
    await clock.advance(300_000);
    assert.equal((await remaining()).granted, false);
    await clock.advance(3_600_000);
    assert.equal((await remaining()).granted, true);
    await whileTimePasses(crashed.close());
  });

  it('each written change reports its conflicts', async () => {
    const written: number[] = [];
    const ids = { next: (prefix: string) => `counted-${prefix}` };
    const onWritten = (conflicts: number) => written.push(conflicts);
    const counted = openSharedLedger({ store, clock, ids, random: () => 0, onError: () => {}, onWritten });
    const holder = { name: 'agent/u', quotas: { tokensPerHour: LIMIT }, prefix: '' };
    await reserve(100);
    assert.ok((await whileTimePasses(counted.ledger([holder]).reserve({ inputTokens: 100 }, op()))).granted);
    // The other gateway changes the record, which this one has cached.
    await reserve(100);
    assert.ok((await whileTimePasses(counted.ledger([holder]).reserve({ inputTokens: 100 }, op()))).granted);
    assert.deepEqual(written, [0, 1]);
    await whileTimePasses(counted.close());
  });
});
