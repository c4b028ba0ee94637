import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import * as fc from 'fast-check';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { fileRecordStore } from '../lib/file-record-store.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { memoryRecordStore, type RecordStore } from '../lib/record-store.ts';
import type { QuotaLimits } from './quotas.ts';
import { type LedgerBook, openLedgerBook } from './ledger.ts';
import type { Amounts, Denial, Ledger } from './port.ts';

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const adapters: Record<string, () => Promise<RecordStore>> = {
  memory: async () => memoryRecordStore(),
  file: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-ledger-'));
    folders.push(folder);
    return fileRecordStore(folder);
  },
};

let keys = 0;
function op(key = `key-${(keys += 1)}`): CallOptions {
  return { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key };
}

function agentLedger(book: LedgerBook, agent: QuotaLimits, policy: QuotaLimits = {}, name = 'analyst'): Ledger {
  return book.ledger([
    { name: `agent/${name}`, quotas: agent, prefix: 'spec.quotas.' },
    { name: 'policy/standard', quotas: policy, prefix: 'TrustPolicy "standard" spec.quotas.' },
  ]);
}

async function granted(ledger: Ledger, amounts: Amounts, key?: string): Promise<string> {
  const answer = await ledger.reserve(amounts, op(key));
  assert.ok(answer.granted, 'granted');
  return answer.id;
}

async function denied(ledger: Ledger, amounts: Amounts): Promise<Denial> {
  const answer = await ledger.reserve(amounts, op());
  assert.ok(!answer.granted, 'denied');
  return answer;
}

for (const [adapter, make] of Object.entries(adapters)) {
  describe(`ledger contract: ${adapter}`, () => {
    it('the ledger grants reservations up to the limit, and a denial names the quota, the used amount and the resume time', async () => {
      const book = await openLedgerBook(await make(), new FakeClock('2026-11-21T13:20:00Z'));
      const ledger = agentLedger(book, { tokensPerHour: 100 });
      await granted(ledger, { inputTokens: 60, outputTokens: 40 });
      assert.deepEqual(await denied(ledger, { inputTokens: 1 }), {
        granted: false,
        quota: 'spec.quotas.tokensPerHour',
        limit: 100,
        used: 100,
        resumesAt: '2026-11-21T14:00:00.000Z',
      });
    });

    it('the ledger releases the reserved amounts that were not used', async () => {
      const book = await openLedgerBook(await make(), new FakeClock('2026-11-21T13:20:00Z'));
      const ledger = agentLedger(book, { tokensPerHour: 100 });
      const id = await granted(ledger, { inputTokens: 50, outputTokens: 50 });
      await ledger.commit(id, { inputTokens: 20, outputTokens: 10 });
      await ledger.commit(id, {});
      const usage = await ledger.usage();
      assert.deepEqual([usage.hour.inputTokens, usage.hour.outputTokens], [20, 10]);
      await granted(ledger, { inputTokens: 70 });
      await denied(ledger, { inputTokens: 1 });
    });

    it('the ledger keeps unsettled reservations charged in full after a restart', async () => {
      const records = await make();
      const clock = new FakeClock('2026-11-21T13:20:00Z');
      const before = await openLedgerBook(records, clock);
      const ledger = agentLedger(before, { tokensPerHour: 100 });
      const settled = await granted(ledger, { inputTokens: 50 });
      await granted(ledger, { inputTokens: 40 });
      await ledger.commit(settled, { inputTokens: 5 });
      await before.close();
      for (let restart = 0; restart < 3; restart += 1) {
        const again = agentLedger(await openLedgerBook(records, clock), { tokensPerHour: 100 });
        assert.equal((await again.usage()).hour.inputTokens, 45);
        await denied(again, { inputTokens: 56 });
      }
    });

    it('the ledger counts windows by the UTC clock', async () => {
      const clock = new FakeClock('2026-11-30T23:59:30Z');
      const book = await openLedgerBook(await make(), clock);
      const ledger = agentLedger(book, { toolCallsPerMinute: 1, tokensPerDay: 10, costMicrosPerMonth: 7 });
      await granted(ledger, { toolCalls: 1, inputTokens: 10, costMicros: 7 });
      assert.equal((await denied(ledger, { toolCalls: 1 })).resumesAt, '2026-12-01T00:00:00.000Z');
      clock.skipTo('2026-12-01T00:00:00Z');
      await granted(ledger, { toolCalls: 1, inputTokens: 10, costMicros: 6 });
      clock.skipTo('2026-12-01T23:59:59.999Z');
      assert.deepEqual(await denied(ledger, { inputTokens: 1, costMicros: 2 }), {
        granted: false,
        quota: 'spec.quotas.costPerMonth',
        limit: 7,
        used: 6,
        resumesAt: '2027-01-01T00:00:00.000Z',
      });
      clock.skipTo('2026-12-02T00:00:00Z');
      await granted(ledger, { inputTokens: 10 });
    });

    it('the ledger charges the policy for all its agents and names it when it denies', async () => {
      const book = await openLedgerBook(await make(), new FakeClock('2026-11-21T13:20:00Z'));
      const one = agentLedger(book, {}, { tokensPerDay: 100 }, 'one');
      const two = agentLedger(book, {}, { tokensPerDay: 100 }, 'two');
      await granted(one, { inputTokens: 60 });
      assert.equal((await denied(two, { inputTokens: 41 })).quota, 'TrustPolicy "standard" spec.quotas.tokensPerDay');
      await granted(two, { inputTokens: 40 });
      assert.equal((await one.usage()).day.inputTokens, 60);
    });

    it('the ledger says once per window that a quota of an account is nearly used, after what is used and not what is reserved', async () => {
      const clock = new FakeClock('2026-11-21T13:20:00Z');
      const book = await openLedgerBook(await make(), clock);
      const seen: string[] = [];
      const own = { name: 'agent/a/one', quotas: { tokensPerHour: 100 }, prefix: 'spec.quotas.' };
      const policy = { name: 'policy/a/p', quotas: { tokensPerDay: 200 }, prefix: 'TrustPolicy "p" spec.quotas.' };
      const ledger = book.ledger([own, policy], ({ field, percent }) => seen.push(`${field} ${percent}`));
      const use = async (reserved: number, used: number): Promise<void> =>
        ledger.commit(await granted(ledger, { inputTokens: reserved }), { inputTokens: used });
      await use(100, 79);
      assert.deepEqual(seen, []);
      await use(10, 1);
      await use(10, 1);
      assert.deepEqual(seen, ['tokensPerHour 80']);
      clock.skipTo('2026-11-21T14:00:00Z');
      await use(90, 85);
      assert.deepEqual(seen, ['tokensPerHour 80', 'tokensPerHour 85', 'tokensPerDay 83']);
    });

    it('the ledger charges no account when one of the accounts denies', async () => {
      const book = await openLedgerBook(await make(), new FakeClock('2026-11-21T13:20:00Z'));
      const ledger = agentLedger(book, { tokensPerDay: 100 }, { tokensPerDay: 10 });
      await denied(ledger, { inputTokens: 11 });
      assert.equal((await ledger.usage()).day.inputTokens, 0);
    });

    it('the ledger returns the same reservation for the same idempotency key while the reservation is open', async () => {
      const book = await openLedgerBook(await make(), new FakeClock('2026-11-21T13:20:00Z'));
      const ledger = agentLedger(book, {});
      const [first, second] = await Promise.all([
        granted(ledger, { inputTokens: 5 }, 'same'),
        granted(ledger, { inputTokens: 5 }, 'same'),
      ]);
      assert.equal(first, second);
      assert.equal((await ledger.usage()).hour.inputTokens, 5);
      await ledger.commit(first, { inputTokens: 5 });
      assert.notEqual(await granted(ledger, { inputTokens: 5 }, 'same'), first);
      assert.equal((await ledger.usage()).hour.inputTokens, 10);
    });

    it('the ledger does not settle into a window that started after the reservation', async () => {
      const clock = new FakeClock('2026-11-21T13:59:59Z');
      const book = await openLedgerBook(await make(), clock);
      const ledger = agentLedger(book, {});
      const id = await granted(ledger, { inputTokens: 100 });
      clock.skipTo('2026-11-21T14:00:01Z');
      await granted(ledger, { inputTokens: 7 });
      await ledger.commit(id, { inputTokens: 1 });
      const usage = await ledger.usage();
      assert.deepEqual([usage.hour.inputTokens, usage.day.inputTokens], [7, 8]);
    });

    it('the ledger never grants concurrent reservations beyond the limit, and reuses released amounts', async () => {
      const step = fc.record({ amount: fc.integer({ min: 1, max: 40 }), used: fc.integer({ min: 0, max: 40 }) });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
          const book = await openLedgerBook(await make(), new FakeClock('2026-11-21T13:20:00Z'));
          const ledger = agentLedger(book, { tokensPerHour: 100 });
          let inFlight = 0;
          let settledSum = 0;
          await Promise.all(
            steps.map(async ({ amount, used }) => {
              const answer = await ledger.reserve({ inputTokens: amount }, op());
              if (!answer.granted) return;
              inFlight += amount;
              assert.ok(inFlight + settledSum <= 100);
              await Promise.resolve();
              const spent = Math.min(used, amount);
              inFlight -= amount;
              settledSum += spent;
              await ledger.commit(answer.id, { inputTokens: spent });
            }),
          );
          assert.equal((await ledger.usage()).hour.inputTokens, settledSum);
        }),
        { numRuns: adapter === 'memory' ? 200 : 20 },
      );
    });
  });
}

describe('the journal of the ledger', () => {
  it('the journal rotates before it grows long, under concurrent use, without losing an entry', async () => {
    const records = memoryRecordStore();
    const clock = new FakeClock('2026-11-21T13:20:00Z');
    const book = await openLedgerBook(records, clock);
    const ledger = agentLedger(book, {});
    const worker = async (): Promise<void> => {
      for (let index = 0; index < 700; index += 1) {
        const id = await granted(ledger, { inputTokens: 10 });
        if (index % 7 !== 0) await ledger.commit(id, { inputTokens: 3 });
      }
    };
    await Promise.all([worker(), worker(), worker()]);
    await book.close();
    const expected = (await ledger.usage()).hour.inputTokens;
    assert.equal(expected, 3 * (100 * 10 + 600 * 3));
    const state = await records.get('ledger', 'state');
    assert.ok(typeof state === 'object' && state !== null && 'generation' in state && Number(state.generation) > 0);
    assert.equal((await agentLedger(await openLedgerBook(records, clock), {}).usage()).hour.inputTokens, expected);
  });

  it('the journal restores the charged amounts after a crash at any point', async () => {
    const records = memoryRecordStore();
    const clock = new FakeClock('2026-11-21T13:20:00Z');
    const book = await openLedgerBook(records, clock);
    const ledger = agentLedger(book, {});
    for (let index = 0; index < 30; index += 1) {
      const id = await granted(ledger, { inputTokens: 10 });
      const copy = memoryRecordStore();
      for (const { name, value } of await records.list('ledger')) await copy.put('ledger', name, value);
      for (const line of await records.read('ledger/journal-0')) await copy.append('ledger/journal-0', line);
      const after = await agentLedger(await openLedgerBook(copy, clock), {}).usage();
      const now = await ledger.usage();
      assert.ok(after.hour.inputTokens >= now.hour.inputTokens, 'never under-charged');
      assert.ok(
        after.hour.inputTokens <= now.hour.inputTokens + 20,
        'over-charged by at most the reservation in flight',
      );
      await ledger.commit(id, { inputTokens: 2 });
    }
  });
});
