import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { Json } from '../lib/json.ts';
import { createLoopGuard, type LoopGuard } from './loop-guard.ts';

/** Checks a call and records it if it is allowed; returns the verdict. */
function call(guard: LoopGuard, name: string, input: Json, result: Json, changesState = false): string {
  const { verdict } = guard.check(name, input);
  if (verdict === 'ok' || verdict === 'warn') guard.record(name, input, result, changesState);
  return verdict;
}

describe('the loop guard', () => {
  it('the guard warns at the third identical call and refuses from the fifth', () => {
    const guard = createLoopGuard();
    const verdicts = Array.from({ length: 7 }, () => call(guard, 'read', { path: 'a' }, 'same'));
    assert.deepEqual(verdicts, ['ok', 'ok', 'warn', 'warn', 'block', 'block', 'block']);
  });

  it('the order of members does not distinguish calls', () => {
    const guard = createLoopGuard();
    const verdicts = [0, 1, 2].map((n) => call(guard, 'f', n % 2 === 0 ? { a: 1, b: 2 } : { b: 2, a: 1 }, null));
    assert.deepEqual(verdicts, ['ok', 'ok', 'warn']);
  });

  it('the guard ends the message after thirty calls without a new result, and every later verdict is break', () => {
    const guard = createLoopGuard();
    const verdicts = Array.from({ length: 32 }, () => call(guard, 'read', {}, 'same'));
    assert.equal(verdicts.indexOf('break'), 29);
    assert.deepEqual(verdicts.slice(29), ['break', 'break', 'break']);
    assert.equal(call(guard, 'other', {}, 1), 'break');
  });

  it('edit and test may alternate while the edits differ', () => {
    const guard = createLoopGuard();
    for (let round = 0; round < 40; round += 1) {
      assert.equal(call(guard, 'edit', { text: `version ${round}` }, 'ok'), 'ok');
      assert.equal(call(guard, 'test', {}, '1 failed'), 'ok');
    }
  });

  it('a test may repeat while two edits undo each other, until thirty calls gave nothing new', () => {
    const guard = createLoopGuard();
    const verdicts: string[] = [];
    for (let round = 0; round < 24; round += 1) {
      verdicts.push(call(guard, 'edit', { text: `version ${round % 3}` }, 'ok', true));
      verdicts.push(call(guard, 'test', {}, '1 failed'));
    }
    const firstBreak = verdicts.indexOf('break');
    assert.ok(firstBreak > 30, `${firstBreak}`);
    assert.ok(verdicts.slice(0, firstBreak).every((verdict) => verdict === 'ok'));
  });

  it('a refused call stays refused after other calls that only read, and runs again after a change of state', () => {
    const guard = createLoopGuard();
    for (let n = 0; n < 5; n += 1) call(guard, 'test', {}, '1 failed');
    for (let n = 0; n < 3; n += 1) {
      assert.equal(call(guard, 'read', { n }, 'text'), 'ok');
      assert.equal(call(guard, 'test', {}, '1 failed'), 'block');
    }
    assert.equal(call(guard, 'edit', {}, 'ok', true), 'ok');
    assert.equal(call(guard, 'test', {}, '1 failed'), 'ok');
  });

  it('a call that changes state does not permit its own repetition', () => {
    const guard = createLoopGuard();
    const verdicts = Array.from({ length: 6 }, () => call(guard, 'send', {}, 'sent', true));
    assert.deepEqual(verdicts, ['ok', 'ok', 'warn', 'warn', 'block', 'block']);
  });

  it('two calls may alternate while one result changes', () => {
    const guard = createLoopGuard({ warnAt: 100, blockAt: 100, breakAt: 1000 });
    for (let round = 0; round < 20; round += 1) {
      assert.equal(call(guard, 'step', {}, 'ok'), 'ok');
      assert.equal(call(guard, 'measure', {}, round), 'ok');
    }
  });

  it('the guard refuses two or three calls that alternate with unchanged results', () => {
    for (const names of [
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]) {
      const guard = createLoopGuard();
      const verdicts = Array.from({ length: names.length * 3 }, (_, index) =>
        call(guard, names[index % names.length] ?? '', {}, 'same'),
      );
      assert.equal(verdicts.at(-1), 'block', names.join());
      assert.ok(!verdicts.slice(0, -1).includes('block'), names.join());
    }
  });

  it('concurrent calls without a result count as repetitions', () => {
    const guard = createLoopGuard();
    const verdicts = Array.from({ length: 6 }, () => guard.check('f', { x: 1 }).verdict);
    assert.deepEqual(verdicts, ['ok', 'ok', 'warn', 'warn', 'block', 'block']);
  });

  it('polling may continue while the result changes', () => {
    const guard = createLoopGuard();
    for (let n = 0; n < 60; n += 1) assert.equal(call(guard, 'poll', {}, { done: n }), 'ok');
  });

  it('the guard accepts arguments that canonical JSON refuses', () => {
    const guard = createLoopGuard();
    assert.equal(call(guard, 'f', '\ud800', '\udfff'), 'ok');
  });

  it('the guard never refuses distinct calls', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { maxLength: 80 }), (inputs) => {
        const guard = createLoopGuard();
        return inputs.every((input) => call(guard, 'f', input, 'same') === 'ok');
      }),
    );
  });
});
