import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CountedRequest, ModelMessage } from '../../models/port.ts';
import { afterAnswer, afterRefusal, lastCount, leastShare, windowShare } from './request-tokens.ts';

const COUNT: CountedRequest = { model: 'p/m', estimated: 1_000, counted: 700 };
const answer = (request?: unknown): ModelMessage =>
  ({
    role: 'assistant',
    text: 'a',
    toolCalls: [],
    ...(request === undefined ? {} : { request }),
  }) as unknown as ModelMessage;

describe('the size of a request', () => {
  it('the newest count of the same model is used, and a damaged one is not', () => {
    const newer = { ...COUNT, counted: 800 };
    const other = { ...COUNT, model: 'p/other' };
    assert.deepEqual(lastCount([answer(COUNT), answer(newer), answer(other), answer()], 'p/m'), newer);
    assert.equal(lastCount([answer(other)], 'p/m'), undefined);
    for (const damaged of [{ counted: -1 }, { counted: 'x' }, { estimated: 0 }, { counted: null }, { estimated: [] }]) {
      assert.equal(lastCount([answer(COUNT), answer({ ...COUNT, ...damaged })], 'p/m'), undefined);
    }
    assert.deepEqual(lastCount([answer({ ...COUNT, refused: 'x' })], 'p/m'), COUNT);
  });

  it('a provider that counts nothing or nonsense keeps the earlier count, and no count makes a share infinite', () => {
    for (const counted of [0, -5, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.equal(afterAnswer({ model: 'p/m', estimated: 2_000 }, counted, COUNT), COUNT);
    }
    assert.deepEqual(afterAnswer({ model: 'p/m', estimated: 2_000 }, 900, { ...COUNT, refused: 5_000 }), {
      model: 'p/m',
      estimated: 2_000,
      counted: 900,
      refused: 5_000,
    });
    assert.equal(windowShare(1_000, 1_000, { ...COUNT, counted: 1e300 }), 4);
    assert.equal(windowShare(1_000, 1_000, { ...COUNT, counted: 1e-300 }), 0.3);
  });

  it('a refused size counts as too long from then on, also after larger refusals', () => {
    const first = afterRefusal({ model: 'p/m', estimated: 500 }, 8_000);
    const later = afterRefusal({ model: 'p/m', estimated: 900 }, 8_000, first);
    assert.equal(later.refused, 500);
    assert.ok(windowShare(490, 8_000, later) > 1 && leastShare(490, 8_000, later) > 1);
    assert.ok(leastShare(470, 8_000, later) <= 1);
  });
});
