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
    await this.#gate;
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
});
