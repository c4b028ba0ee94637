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

function leased(document: LedgerDocument, change: LedgerChange) {
  const outcome = applyChange(document, change);
  assert.ok(!('denial' in outcome) && outcome.block !== undefined);
  return { document: outcome.next, block: outcome.block };
}

describe('the shared counters of an account', () => {
  it('lease at least what is needed, at most a share, and never more than there is room for', () => {
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
              assert.ok(sum + need > limit, 'denied although there was room');
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

  it('hold nothing any more when all that was leased is settled or given back', () => {
    const { document, block } = leased(empty(), wanting(1_000, 640_000));
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

  it('charge a block of an hour that is over to the day alone', () => {
    const { document, block } = leased(empty(), wanting(1_000, 64_000));
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

  it('charge the hour that another clock has begun, however late the own one is', () => {
    const ahead = leased(empty(), wanting(10, 1_000, 1, NOON + HOUR)).document;
    const behind = leased(ahead, { ...wanting(10, 1_000, 1, NOON + HOUR - 1), writer: 'two' });
    assert.equal(behind.block.time, NOON + HOUR);
    assert.equal(behind.document.held.hour.start, NOON + HOUR);
  });

  it('take nothing back for a block they never leased', () => {
    const { document } = leased(empty(), wanting(1_000, 640_000));
    const settled = [{ epoch: 'epoch-0', time: NOON, released: held(1_000), spent: countsOf({ inputTokens: 5 }) }];
    const outcome = applyChange(document, { writer: 'two', seq: 1, time: NOON, settled });
    assert.ok(!('denial' in outcome));
    assert.equal(outcome.next.held.hour.counts.inputTokens, document.held.hour.counts.inputTokens);
    assert.equal(outcome.next.spent.hour.counts.inputTokens, 5);
  });

  it('know a change that was made, with its block, after they were stored', () => {
    const { document, block } = leased(empty(), wanting(1_000, 640_000, 7));
    const stored = documentFrom(JSON.parse(JSON.stringify(document)));
    assert.deepEqual(stored, document);
    assert.deepEqual(appliedChange(stored ?? empty(), { writer: 'one', seq: 7 })?.block, block);
    assert.equal(appliedChange(document, { writer: 'one', seq: 8 }), undefined);
    assert.equal(appliedChange(document, { writer: 'two', seq: 1 }), undefined);
  });

  it('begin with what is written elsewhere, of windows that are not over', () => {
    const spent = countsOf({ inputTokens: 900 });
    const day = Date.UTC(2031, 4, 5);
    const opening = [
      { window: 'hour' as const, start: NOON - HOUR, spent },
      { window: 'day' as const, start: day, spent },
    ];
    const { hour, day: today } = newDocument('epoch-2', opening, NOON).spent;
    assert.deepEqual([hour.counts.inputTokens, today.counts.inputTokens], [0, 900]);
  });

  it('are no counters when a part is missing', () => {
    const whole = JSON.parse(JSON.stringify(empty()));
    assert.notEqual(documentFrom(whole), undefined);
    for (const key of ['epoch', 'spent', 'held', 'writers']) {
      assert.equal(documentFrom({ ...whole, [key]: 1 }), undefined, key);
    }
    assert.equal(documentFrom(undefined), undefined);
  });
});
