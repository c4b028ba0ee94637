import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../../lib/errors.ts';
import { requestSize } from '../../models/charge/request-size.ts';
import type { ModelEvent, ModelMessage, ModelRequest } from '../../models/port.ts';
import { modelOver, rawHttpServer, WIRES, type WireName } from '../../models/raw-http-server.testing.ts';
import { says, type ScriptedAnswer, scriptedLoop } from './scripted-loop.testing.ts';

const lastOf = (messages: readonly ModelMessage[] | undefined): ModelMessage | undefined => messages?.at(-1);
const sizeOf = (request: ModelRequest | undefined): number => JSON.stringify(request?.messages).length;
const overflow = (): never => {
  throw new TemperError('TEMPER_MODEL_CONTEXT_OVERFLOW', 'too long');
};

/** The refusal of each provider, and an answer. */
const REFUSALS: Record<WireName, unknown> = {
  'openai-chat': {
    error: { message: 'too many tokens', type: 'invalid_request_error', code: 'context_length_exceeded' },
  },
  'openai-responses': {
    error: { message: 'too many tokens', type: 'invalid_request_error', code: 'context_length_exceeded' },
  },
  'anthropic-messages': {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  },
};
const ANSWERS: Record<WireName, unknown> = {
  'openai-chat': { model: 'm', choices: [{ index: 0, message: { content: 'fits' }, finish_reason: 'stop' }] },
  'openai-responses': {
    status: 'completed',
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'fits' }] }],
  },
  'anthropic-messages': { content: [{ type: 'text', text: 'fits' }], stop_reason: 'end_turn' },
};

/** A model that gives no summaries, so that messages are removed. */
const withoutSummary = ({ system }: ModelRequest): ModelEvent[] =>
  system.startsWith('You summarise') ? says('') : says('fine');

describe('context overflow', () => {
  for (const wire of WIRES) {
    it(`the refusal of a too long request over ${wire} is answered by one smaller request`, async () => {
      const sizes: number[] = [];
      await using server = await rawHttpServer((request, response) => {
        const size = Number(request.headers['content-length']);
        sizes.push(size);
        response.writeHead(size > 12_000 ? 400 : 200, { 'content-type': 'application/json' });
        response.end(JSON.stringify((size > 12_000 ? REFUSALS : ANSWERS)[wire]));
      });
      const { send } = scriptedLoop([], {}, { model: modelOver(wire, server.url) });
      for (let index = 0; index < 6; index += 1) await send('a question of some length. '.repeat(80));
      const [refused = 0] = sizes.filter((size) => size > 12_000);
      const repeated = sizes[sizes.indexOf(refused) + 1] ?? 0;
      assert.ok(refused > 12_000 && repeated < 0.95 * refused, sizes.join());
      assert.equal(sizes.filter((size) => size > 0.95 * refused).length, 1, `sent once: ${sizes.join()}`);
    });
  }

  it('a request that the provider rejects as too long is retried once with a smaller history', async () => {
    const turns = Array.from({ length: 8 }, (_, index) => says(`answer ${index}`));
    const { send, model } = scriptedLoop([...turns, overflow, says('fits')]);
    for (let index = 0; index < 8; index += 1) await send(`question ${index}`);
    assert.equal((await send('the task')).reply, 'fits');
    const messages = model.requests.at(-1)?.messages ?? [];
    assert.ok(messages.length <= 5);
    assert.match(messages[0]?.text ?? '', /earlier messages .* were removed/);
    assert.equal(lastOf(messages)?.text, 'the task');
  });

  it('a request that the provider rejects twice fails with the error of the provider', async () => {
    const { send, model } = scriptedLoop([...Array.from({ length: 8 }, () => says('answer')), overflow]);
    for (let index = 0; index < 8; index += 1) await send(`question ${index}`);
    await assert.rejects(send('the task'), /too long/);
    assert.equal(model.requests.length, 10, 'one repetition');
  });

  it('a rejected request from which nothing can be removed is not sent again', async () => {
    const { send, model } = scriptedLoop([overflow]);
    await assert.rejects(send('the task'), /too long/);
    assert.equal(model.requests.length, 1);
  });

  it('a refused size is stored with the next answer, so it is not sent again after a restart', async () => {
    const before = scriptedLoop([...Array.from({ length: 8 }, () => says('answer')), overflow, says('fits')]);
    for (let index = 0; index < 9; index += 1) await before.send(`question ${index}`);
    const [refused, repeated] = before.model.requests.slice(-2);
    assert.ok(sizeOf(repeated) < sizeOf(refused));
    const after = scriptedLoop([withoutSummary], {}, { records: before.records });
    await after.send('and now');
    assert.ok(sizeOf(after.model.requests.at(-1)) < sizeOf(refused));
    assert.match(after.model.requests.at(-1)?.messages.at(-1)?.text ?? '', /and now/);
  });
});

describe('the count of the provider', () => {
  /** An answer of a provider that counts this many tokens for each token of the estimate. */
  const counting =
    (factor: number): ScriptedAnswer =>
    (request): ModelEvent[] => {
      const inputTokens = Math.round(factor * requestSize(request).tokens);
      const usage = { inputTokens, outputTokens: 1, cachedInputTokens: 0 };
      return [
        ...withoutSummary(request).filter(({ type }) => type === 'text'),
        { type: 'end', stopReason: 'stop', usage, model: 'scripted' },
      ];
    };
  const contextTokens = (): number => 20_000;

  for (const [factor, kept] of [
    [0.5, 13],
    [2, 5],
  ] as const) {
    it(`a history stays as the provider counts it (${factor} tokens per estimated one), also after a restart`, async () => {
      const long = 'an ordinary sentence of several words. '.repeat(120);
      const before = scriptedLoop([counting(factor)], {}, { contextTokens });
      for (let index = 0; index < 6; index += 1) await before.send(long);
      const { model, send } = scriptedLoop([counting(factor)], {}, { contextTokens, records: before.records });
      await send('next');
      assert.equal(model.requests.at(-1)?.messages.length, kept);
      assert.ok(!JSON.stringify(model.requests).includes('"estimated"'), 'no provider gets the counts');
    });
  }
});
