import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { toCounts } from '../../ledger/account.ts';
import {
  findAppliedChange,
  applyChange,
  totalAt,
  parseAccountRecord,
  type AllocationAmounts,
  type LedgerChange,
  type AccountRecord,
  newAccountRecord,
  ZERO_AMOUNTS,
} from './account-record.ts';

const NOON = Date.UTC(2031, 4, 5, 12, 0, 0);
const HOUR = 3_600_000;

const empty = (): AccountRecord => newAccountRecord('epoch-1', [], NOON);
const held = (tokens: number): AllocationAmounts => ({ ...ZERO_AMOUNTS, tokens });

function wanting(tokens: number, tokensPerHour: number, seq = 1, time = NOON): LedgerChange {
  return {
    writer: 'one',
    seq,
    time,
    committed: [],
    request: { need: held(tokens), limits: { tokensPerHour }, prefix: 'q.' },
  };
}

function allocate(document: AccountRecord, change: LedgerChange) {
  const outcome = applyChange(document, change);
  assert.ok(!('denial' in outcome) && outcome.block !== undefined);
  return { document: outcome.next, block: outcome.block };
}

describe('account record', () => {
  it('applyChange allocates at least the need, at most a share of the limit, and never more than remains', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.array(fc.integer({ min: 1, max: 50_000 }), { minLength: 1, maxLength: 40 }),
        (limit, needs) => {
          let document = empty();
          let sum = 0;
          needs.forEach((need, index) => {
            const outcome = applyChange(document, wanting(need, limit, index + 1));
            if ('denial' in outcome) {
              assert.ok(sum + need > limit, 'denied although enough remained');
              assert.deepEqual([outcome.denial.used, outcome.denial.limit], [sum, limit]);
              return;
            }
            const { tokens = 0 } = outcome.block ?? {};
            assert.ok(tokens >= need && tokens <= Math.max(need, limit / 64));
            sum += tokens;
            document = outcome.next;
          });
          assert.ok(sum <= limit);
          assert.equal(totalAt(document, NOON).hour.counts.inputTokens, sum);
        },
      ),
    );
  });

  it('applyChange leaves nothing held when an allocation is completely committed or released', () => {
    const { document, block } = allocate(empty(), wanting(1_000, 640_000));
    const spent = toCounts({ inputTokens: 300, outputTokens: 40 });
    const settled = [{ epoch: 'epoch-1', time: block.time, released: held(block.tokens), spent }];
    const outcome = applyChange(document, { writer: 'one', seq: 2, time: NOON, committed: settled });
    assert.ok(!('denial' in outcome));
    const { hour, day, month } = outcome.next.held;
    assert.deepEqual(
      [hour, day, month].map(({ counts }) => counts.inputTokens),
      [0, 0, 0],
    );
    assert.equal(outcome.next.spent.month.counts.outputTokens, 40);
  });

  it('applyChange charges an allocation of a past hour to the day only', () => {
    const { document, block } = allocate(empty(), wanting(1_000, 64_000));
    const settled = [
      { epoch: 'epoch-1', time: block.time, released: held(block.tokens), spent: toCounts({ inputTokens: 7 }) },
    ];
    const outcome = applyChange(document, { writer: 'one', seq: 2, time: NOON + HOUR, committed: settled });
    assert.ok(!('denial' in outcome));
    assert.deepEqual(
      [
        outcome.next.spent.hour.counts.inputTokens,
        outcome.next.spent.day.counts.inputTokens,
        outcome.next.held.day.counts.inputTokens,
      ],
      [0, 7, 0],
    );
  });

  it('applyChange charges the hour that another gateway has started, also when the own clock is behind', () => {
    const ahead = allocate(empty(), wanting(10, 1_000, 1, NOON + HOUR)).document;
    const behind = allocate(ahead, { ...wanting(10, 1_000, 1, NOON + HOUR - 1), writer: 'two' });
    assert.equal(behind.block.time, NOON + HOUR);
    assert.equal(behind.document.held.hour.start, NOON + HOUR);
  });

  it('applyChange releases nothing for an allocation of another epoch', () => {
    const { document } = allocate(empty(), wanting(1_000, 640_000));
    const settled = [{ epoch: 'epoch-0', time: NOON, released: held(1_000), spent: toCounts({ inputTokens: 5 }) }];
    const outcome = applyChange(document, { writer: 'two', seq: 1, time: NOON, committed: settled });
    assert.ok(!('denial' in outcome));
    assert.equal(outcome.next.held.hour.counts.inputTokens, document.held.hour.counts.inputTokens);
    assert.equal(outcome.next.spent.hour.counts.inputTokens, 5);
  });

  it('findAppliedChange finds a stored change and its allocation', () => {
    const { document, block } = allocate(empty(), wanting(1_000, 640_000, 7));
    const stored = parseAccountRecord(JSON.parse(JSON.stringify(document)));
    assert.deepEqual(stored, document);
    assert.deepEqual(findAppliedChange(stored ?? empty(), { writer: 'one', seq: 7 })?.block, block);
    assert.equal(findAppliedChange(document, { writer: 'one', seq: 8 }), undefined);
    assert.equal(findAppliedChange(document, { writer: 'two', seq: 1 }), undefined);
  });

  it('a new record starts with the given spend of windows that have not ended', () => {
    const spent = toCounts({ inputTokens: 900 });
    const day = Date.UTC(2031, 4, 5);
    const opening = [
      { window: 'hour' as const, start: NOON - HOUR, spent },
      { window: 'day' as const, start: day, spent },
    ];
    const { hour, day: today } = newAccountRecord('epoch-2', opening, NOON).spent;
    assert.deepEqual([hour.counts.inputTokens, today.counts.inputTokens], [0, 900]);
  });

  it('parseAccountRecord rejects a record with a missing part', () => {
    const whole = JSON.parse(JSON.stringify(empty()));
    assert.notEqual(parseAccountRecord(whole), undefined);
    for (const key of ['epoch', 'spent', 'held', 'writers']) {
      assert.equal(parseAccountRecord({ ...whole, [key]: 1 }), undefined, key);
    }
    assert.equal(parseAccountRecord(undefined), undefined);
  });
});
