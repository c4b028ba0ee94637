import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { ModelMessage } from '../../models/port.ts';
import { repairHistory } from './repair-history.ts';

const user = (text: string): ModelMessage => ({ role: 'user', text });
const assistant = (text: string, ...ids: string[]): ModelMessage => ({
  role: 'assistant',
  text,
  toolCalls: ids.map((id) => ({ id, name: 'f', arguments: '{}' })),
});
const result = (id: string, text: string): ModelMessage => ({
  role: 'tool',
  toolCallId: id,
  name: 'f',
  text,
  isError: false,
});
const lost = (id: string): ModelMessage => ({
  role: 'tool',
  toolCallId: id,
  name: 'f',
  text: '[Tool execution was interrupted or lost]',
  isError: true,
});

describe('repairHistory', () => {
  it('a valid history is unchanged', () => {
    const whole = [
      user('a'),
      assistant('', '1', '2'),
      result('1', 'x'),
      result('2', 'y'),
      assistant('done'),
      user('b'),
    ];
    assert.deepEqual(repairHistory(whole), whole);
  });
  it('a call without a result gets an error result', () => {
    assert.deepEqual(repairHistory([user('a'), assistant('', '1', '2'), result('2', 'y')]), [
      user('a'),
      assistant('', '1', '2'),
      lost('1'),
      result('2', 'y'),
    ]);
  });
  it('results without a call and empty messages are dropped', () => {
    assert.deepEqual(repairHistory([user('a'), result('9', 'x'), user(' \n'), assistant('  '), assistant('b')]), [
      user('a'),
      assistant('b'),
    ]);
  });
  it('a misplaced result moves to its call, from before or after it', () => {
    const repaired = [user('a'), assistant('', '1', '2'), result('1', 'x'), result('2', 'y'), user('b')];
    assert.deepEqual(
      repairHistory([user('a'), result('2', 'y'), assistant('', '1', '2'), user('b'), result('1', 'x')]),
      repaired,
    );
  });
  it('the first of two results of one call is kept', () => {
    assert.deepEqual(repairHistory([user('a'), assistant('', '1'), result('1', 'x'), result('1', 'y')]), [
      user('a'),
      assistant('', '1'),
      result('1', 'x'),
    ]);
  });
  it('results of a reused id stay with their own calls', () => {
    const reused = [user('a'), assistant('', '1'), result('1', 'x'), assistant('', '1'), result('1', 'y')];
    assert.deepEqual(repairHistory(reused), [
      user('a'),
      assistant('', '1'),
      result('1', 'x'),
      assistant('', '1'),
      result('1', 'y'),
    ]);
  });
  it('adjacent messages of one role are merged and the first message is a user message', () => {
    assert.deepEqual(
      repairHistory([assistant('x', '1'), result('1', 'r'), user('a'), user('b'), assistant('c'), assistant('d', '2')]),
      [user('a\n\nb'), assistant('c\n\nd', '2'), lost('2')],
    );
    assert.deepEqual(repairHistory([assistant('alone')]), []);
  });
});

const id = fc.constantFrom('1', '2', '3');
const text = fc.constantFrom('', ' ', 'a', 'b');
const message: fc.Arbitrary<ModelMessage> = fc.oneof(
  text.map(user),
  fc.tuple(text, fc.array(id, { maxLength: 3 })).map(([words, ids]) => assistant(words, ...ids)),
  fc.tuple(id, text).map(([call, words]) => result(call, words)),
);

/** Describes the defects of a history. */
function defects(items: readonly ModelMessage[]): string[] {
  const found: string[] = [];
  if (items.length > 0 && items[0]?.role !== 'user') found.push('does not begin with the user');
  let expected: string[] = [];
  let before: string | undefined;
  for (const item of items) {
    if (item.role === 'tool') {
      if (expected.shift() !== item.toolCallId) found.push(`result ${item.toolCallId} out of place`);
    } else {
      if (expected.length > 0) found.push(`calls ${expected.join()} without result`);
      if (before === item.role) found.push(`two ${item.role} messages`);
      expected = item.role === 'assistant' ? item.toolCalls.map((call) => call.id) : [];
      if (new Set(expected).size !== expected.length) found.push('an id twice in one message');
      if (item.text.trim() === '' && expected.length === 0) found.push('an empty message');
    }
    before = item.role;
  }
  if (expected.length > 0) found.push(`calls ${expected.join()} without result`);
  return found;
}

describe('repairHistory properties', () => {
  it('any repaired history has one result after each call, starts with a user message and alternates', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (items) => {
        assert.deepEqual(defects(repairHistory(items)), []);
      }),
      { numRuns: 3_000 },
    );
  });
  it('the repair is idempotent', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (items) => {
        const once = repairHistory(items);
        assert.deepEqual(repairHistory(once), once);
      }),
      { numRuns: 3_000 },
    );
  });
  it('the repair preserves all user texts', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (items) => {
        const spoken = items.filter((item) => item.role === 'user' && item.text.trim() !== '').map((item) => item.text);
        const kept = repairHistory(items).filter((item) => item.role === 'user');
        assert.equal(kept.map((item) => item.text).join('\n\n'), spoken.join('\n\n'));
      }),
    );
  });
  it('a repaired history that was cut anywhere can be repaired again', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), fc.nat(14), (items, cut) => {
        assert.deepEqual(defects(repairHistory(repairHistory(items).slice(cut))), []);
      }),
    );
  });
});
