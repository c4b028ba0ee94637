import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import type { CountedRequest, ModelMessage } from '../../models/port.ts';
import { textSize } from '../../models/charge/request-size.ts';
import { type ContextBudget, estimateRequest, fitContext } from './context-window.ts';
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

const fixed = { system: '', tools: [] };
const budget = (windowTokens: number, more: Partial<ContextBudget> = {}): ContextBudget => ({
  windowTokens,
  fixed,
  task: 'the task',
  ...more,
});
const counted = (estimated: number, tokens: number, more: Partial<CountedRequest> = {}): CountedRequest => ({
  model: 'p/m',
  estimated,
  counted: tokens,
  ...more,
});
const resultSizes = (messages: ModelMessage[]): number[] =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.text.length] : []));

describe('fitContext', () => {
  it('a history that fits is unchanged', () => {
    const messages = [user('the task'), ...step('1', 100), assistant('done')];
    assert.deepEqual(fitContext(messages, budget(10_000)), messages);
  });
  it('a result above 30 % of the window is truncated', () => {
    const [size = 0] = resultSizes(fitContext([user('the task'), ...step('1', 28_000)], budget(10_000)));
    assert.ok(size > 8_900 && size < 9_100, `${size} letters of a third of a token each`);
  });
  it('the oldest results are truncated first when all results exceed 75 % of the window', () => {
    const messages = [user('the task'), ...['1', '2', '3', '4'].flatMap((id) => step(id, 8_000))];
    const sizes = resultSizes(fitContext(messages, budget(10_000)));
    assert.ok((sizes[0] ?? 0) < 2_100 && (sizes[1] ?? 0) < 8_001, sizes.join());
    assert.deepEqual(sizes.slice(2), [8_000, 8_000]);
  });
  it('above 70 % the last ten messages stay, above 90 % the last four, always with the task and a note', () => {
    const long = Array.from({ length: 30 }, (_, index) =>
      (index % 2 === 0 ? user : assistant)(`${index}${'y'.repeat(1_000)}`),
    );
    for (const [window, count] of [
      [13_500, 10],
      [11_000, 4],
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
      () => fitContext([user('z'.repeat(60_000))], budget(10_000, { task: 'z' })),
      (error) => isTemperError(error, 'TEMPER_MODEL_CONTEXT_OVERFLOW'),
    );
  });
  it('a result of any script takes at most 30 % of the window', () => {
    const scripts = ['日本語の文章', '😀👩‍🚀', 'const x9 = [0x1F, "A_B"];', 'QmFzZTY0Kw9/', 'Ünïcödé'];
    for (const script of scripts) {
      const text = script.repeat(20_000);
      const [call, result] = step('1', 10);
      assert.ok(call !== undefined && result?.role === 'tool');
      const fitted = fitContext([user('the task'), call, { ...result, text }], budget(20_000)).at(-1)?.text ?? '';
      assert.ok(textSize(fitted).tokens <= 6_100, `${script}: ${textSize(fitted).tokens} tokens`);
      assert.ok(textSize(fitted).tokens > 5_900 && fitted.isWellFormed(), script);
    }
  });
  it('the count of the provider decides how much of the history stays', () => {
    const history = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? user : assistant)('y'.repeat(1_000)));
    const estimated = estimateRequest(history, fixed);
    const fitted = (last?: CountedRequest): number =>
      fitContext([...history, user('the task')], budget(estimated, last === undefined ? {} : { last })).length;
    assert.equal(fitted(), 5, 'the estimate alone fills the window');
    assert.equal(fitted(counted(estimated, estimated / 2)), 41, 'the provider counted half of it');
    assert.equal(fitted(counted(estimated / 8, estimated / 16)), 5, 'new content may be of another script');
    assert.equal(fitted(counted(estimated, estimated * 1e9)), 5, 'an implausible count is limited');
  });
  it('a history near the size of one that the provider refused is reduced further, or not sent', () => {
    const history = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? user : assistant)('y'.repeat(1_000)));
    const estimated = estimateRequest(history, fixed);
    const last = counted(estimated, estimated, { refused: estimated });
    const fitted = fitContext(history, budget(1_000_000, { last }));
    assert.ok(estimateRequest(fitted, fixed) <= 0.95 * estimated);
    const [only] = history;
    assert.ok(only !== undefined);
    const alone = estimateRequest([only], fixed);
    assert.throws(
      () => fitContext([only], budget(1_000_000, { last: counted(alone, alone, { refused: alone }) })),
      (error) => isTemperError(error, 'TEMPER_MODEL_CONTEXT_OVERFLOW'),
    );
  });
  it('a message that is only possibly too long is left to the provider', () => {
    const message = user('z'.repeat(45_000));
    assert.deepEqual(fitContext([message], budget(10_000, { task: 'z' })), [message]);
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
        assert.ok(estimateRequest(fitted, fixed) <= window / 0.6);
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
