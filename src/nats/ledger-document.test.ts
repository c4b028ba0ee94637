import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { countsOf } from '../ledger/account.ts';
import {
  appliedChange,
  applyChange,
  chargedAt,
  documentFrom,
  type Held,
  type LedgerChange,
  type LedgerDocument,
  newDocument,
  NOTHING_HELD,
} from './ledger-document.ts';

const NOON = Date.UTC(2031, 4, 5, 12, 0, 0);
const HOUR = 3_600_000;

const empty = (): LedgerDocument => newDocument('epoch-1', [], NOON);
const held = (tokens: number): Held => ({ ...NOTHING_HELD, tokens });

function wanting(tokens: number, tokensPerHour: number, seq = 1, time = NOON): LedgerChange {
  return {
    writer: 'one',
    seq,
    time,
    settled: [],
    wanted: { need: held(tokens), limits: { tokensPerHour }, prefix: 'q.' },
  };
}

function allocate(document: LedgerDocument, change: LedgerChange) {
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
          assert.equal(chargedAt(document, NOON).hour.counts.inputTokens, sum);
        },
      ),
    );
  });

  it('applyChange leaves nothing held when an allocation is completely committed or released', () => {
    const { document, block } = allocate(empty(), wanting(1_000, 640_000));
    const spent = countsOf({ inputTokens: 300, outputTokens: 40 });
    const settled = [{ epoch: 'epoch-1', time: block.time, released: held(block.tokens), spent }];
    const outcome = applyChange(document, { writer: 'one', seq: 2, time: NOON, settled });
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
      { epoch: 'epoch-1', time: block.time, released: held(block.tokens), spent: countsOf({ inputTokens: 7 }) },
    ];
    const outcome = applyChange(document, { writer: 'one', seq: 2, time: NOON + HOUR, settled });
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
    const settled = [{ epoch: 'epoch-0', time: NOON, released: held(1_000), spent: countsOf({ inputTokens: 5 }) }];
    const outcome = applyChange(document, { writer: 'two', seq: 1, time: NOON, settled });
    assert.ok(!('denial' in outcome));
    assert.equal(outcome.next.held.hour.counts.inputTokens, document.held.hour.counts.inputTokens);
    assert.equal(outcome.next.spent.hour.counts.inputTokens, 5);
  });

  it('findAppliedChange finds a stored change and its allocation', () => {
    const { document, block } = allocate(empty(), wanting(1_000, 640_000, 7));
    const stored = documentFrom(JSON.parse(JSON.stringify(document)));
    assert.deepEqual(stored, document);
    assert.deepEqual(appliedChange(stored ?? empty(), { writer: 'one', seq: 7 })?.block, block);
    assert.equal(appliedChange(document, { writer: 'one', seq: 8 }), undefined);
    assert.equal(appliedChange(document, { writer: 'two', seq: 1 }), undefined);
  });

  it('a new record starts with the given spend of windows that have not ended', () => {
    const spent = countsOf({ inputTokens: 900 });
    const day = Date.UTC(2031, 4, 5);
    const opening = [
      { window: 'hour' as const, start: NOON - HOUR, spent },
      { window: 'day' as const, start: day, spent },
    ];
    const { hour, day: today } = newDocument('epoch-2', opening, NOON).spent;
    assert.deepEqual([hour.counts.inputTokens, today.counts.inputTokens], [0, 900]);
  });

  it('parseAccountRecord rejects a record with a missing part', () => {
    const whole = JSON.parse(JSON.stringify(empty()));
    assert.notEqual(documentFrom(whole), undefined);
    for (const key of ['epoch', 'spent', 'held', 'writers']) {
      assert.equal(documentFrom({ ...whole, [key]: 1 }), undefined, key);
    }
    assert.equal(documentFrom(undefined), undefined);
  });
});
