import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { ModelMessage } from '../models/port.ts';
import { repairHistory } from './repair.ts';

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

describe('repairing a history', () => {
  it('leaves a whole one as it is', () => {
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
  it('gives a call that lost its result an error', () => {
    assert.deepEqual(repairHistory([user('a'), assistant('', '1', '2'), result('2', 'y')]), [
      user('a'),
      assistant('', '1', '2'),
      lost('1'),
      result('2', 'y'),
    ]);
  });
  it('drops results nobody asked for and messages that say nothing', () => {
    assert.deepEqual(repairHistory([user('a'), result('9', 'x'), user(' \n'), assistant('  '), assistant('b')]), [
      user('a'),
      assistant('b'),
    ]);
  });
  it('moves a misplaced result to its call, from before or after', () => {
    const repaired = [user('a'), assistant('', '1', '2'), result('1', 'x'), result('2', 'y'), user('b')];
    assert.deepEqual(
      repairHistory([user('a'), result('2', 'y'), assistant('', '1', '2'), user('b'), result('1', 'x')]),
      repaired,
    );
  });
  it('keeps the first of two results', () => {
    assert.deepEqual(repairHistory([user('a'), assistant('', '1'), result('1', 'x'), result('1', 'y')]), [
      user('a'),
      assistant('', '1'),
      result('1', 'x'),
    ]);
  });
  it('keeps the results of an id that was used twice apart', () => {
    const reused = [user('a'), assistant('', '1'), result('1', 'x'), assistant('', '1'), result('1', 'y')];
    assert.deepEqual(repairHistory(reused), [
      user('a'),
      assistant('', '1'),
      result('1', 'x'),
      assistant('', '1'),
      result('1', 'y'),
    ]);
  });
  it('merges neighbours and begins with the user', () => {
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

/** What is wrong with a history, in words. */
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

describe('a repaired history', () => {
  it('has one result right after each call, begins with the user and alternates, whatever it was', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (items) => {
        assert.deepEqual(defects(repairHistory(items)), []);
      }),
      { numRuns: 3_000 },
    );
  });
  it('is its own repair', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (items) => {
        const once = repairHistory(items);
        assert.deepEqual(repairHistory(once), once);
      }),
      { numRuns: 3_000 },
    );
  });
  it('invents no text but the lost result and loses no user text after the first', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (items) => {
        const spoken = items.filter((item) => item.role === 'user' && item.text.trim() !== '').map((item) => item.text);
        const kept = repairHistory(items).filter((item) => item.role === 'user');
        assert.equal(kept.map((item) => item.text).join('\n\n'), spoken.join('\n\n'));
      }),
    );
  });
  it('is repaired again to a whole one after any cut', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), fc.nat(14), (items, cut) => {
        assert.deepEqual(defects(repairHistory(repairHistory(items).slice(cut))), []);
      }),
    );
  });
});
