import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import type { ModelMessage } from '../../models/port.ts';
import { charactersOf } from '../../models/token-estimate.ts';
import { type ContextBudget, fitContext } from './context-window.ts';
import { repairHistory } from './repair-history.ts';
import { truncate, truncateAtLine } from './tool-result-text.ts';

const user = (text: string): ModelMessage => ({ role: 'user', text });
const assistant = (text: string): ModelMessage => ({ role: 'assistant', text, toolCalls: [] });

/** A call and its result with the given number of characters. */
function step(id: string, characters: number): ModelMessage[] {
  return [
    { role: 'assistant', text: '', toolCalls: [{ id, name: 'f', arguments: '{}' }] },
    { role: 'tool', toolCallId: id, name: 'f', text: `${id}:${'x'.repeat(characters - 2)}`, isError: false },
  ];
}

const budget = (windowTokens: number, task = 'the task'): ContextBudget => ({ windowTokens, fixedCharacters: 0, task });
const resultSizes = (messages: ModelMessage[]): number[] =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.text.length] : []));

describe('fitContext', () => {
  it('a history that fits is unchanged', () => {
    const messages = [user('the task'), ...step('1', 100), assistant('done')];
    assert.deepEqual(fitContext(messages, budget(10_000)), messages);
  });
  it('a result above 30 % of the window is truncated', () => {
    const [size = 0] = resultSizes(fitContext([user('the task'), ...step('1', 19_000)], budget(10_000)));
    assert.ok(size > 5_900 && size < 6_100);
  });
  it('the oldest results are truncated first when all results exceed 75 % of the window', () => {
    const messages = [user('the task'), ...['1', '2', '3', '4'].flatMap((id) => step(id, 5_000))];
    const sizes = resultSizes(fitContext(messages, budget(10_000)));
    assert.ok((sizes[0] ?? 0) < 2_100 && (sizes[1] ?? 0) < 5_001, sizes.join());
    assert.deepEqual(sizes.slice(2), [5_000, 5_000]);
  });
  it('above 70 % the last ten messages stay, above 90 % the last four, always with the task and a note', () => {
    const long = Array.from({ length: 30 }, (_, index) =>
      (index % 2 === 0 ? user : assistant)(`${index}${'y'.repeat(1_000)}`),
    );
    for (const [window, count] of [
      [9_500, 10],
      [8_000, 4],
    ] as const) {
      const fitted = fitContext([user('the task'), assistant('a'), ...long], budget(window));
      assert.equal(fitted.at(-1)?.text, long.at(-1)?.text);
      assert.ok(fitted.length <= count + 1 && fitted.length >= count, `${fitted.length} of ${count}`);
      assert.match(
        fitted[0]?.text ?? '',
        /^\[\d+ earlier messages \(\d+ characters\) were removed[^\]]*\]\n\nthe task/,
      );
    }
  });
  it('a history whose last messages do not fit throws an error', () => {
    assert.throws(
      () => fitContext([user('z'.repeat(50_000))], budget(10_000, 'z')),
      (error) => isTemperError(error, 'TEMPER_MODEL_CONTEXT_OVERFLOW'),
    );
  });
  it('any history becomes a valid one that fits and contains the task', () => {
    const part = fc.oneof(
      fc.nat(3_000).map((size) => [user('u'.repeat(size + 1))]),
      fc.nat(3_000).map((size) => [assistant('a'.repeat(size + 1))]),
      fc.tuple(fc.constantFrom('1', '2', '3'), fc.integer({ min: 2, max: 9_000 })).map(([id, size]) => step(id, size)),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 25 }), fc.integer({ min: 5_000, max: 30_000 }), (parts, window) => {
        const whole = repairHistory([...parts.flat(), user('the task'), ...step('9', 500)]);
        const fitted = fitContext(whole, budget(window));
        assert.deepEqual(fitted, repairHistory(fitted));
        assert.ok(charactersOf(fitted) / 4 <= window);
        assert.ok(fitted.some((message) => message.role === 'user' && message.text.includes('the task')));
        assert.equal(fitted.at(-1)?.role, 'tool');
      }),
      { numRuns: 300 },
    );
  });
});

describe('text truncation', () => {
  it('a truncated text states both sizes and has no split character', () => {
    assert.equal(truncate('abcdef', 6), 'abcdef');
    assert.equal(truncate('abcdefg', 6), 'abcdef\n[Output truncated: 7 → 6 characters]');
    assert.ok(truncate('aaaaa😀b', 6).startsWith('aaaaa\n['));
  });
  it('compacted ends at a line break near the limit', () => {
    assert.equal(
      truncateAtLine('line one\nline two\nline three', 20),
      'line one\nline two\n[Output truncated: 28 → 17 characters]',
    );
    assert.equal(
      truncateAtLine(`a\n${'b'.repeat(50)}`, 20),
      `a\n${'b'.repeat(18)}\n[Output truncated: 52 → 20 characters]`,
    );
  });
});
