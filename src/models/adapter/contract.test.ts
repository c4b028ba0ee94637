import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { aRequest, anOp, callsOf, eventsOf, modelOver, textOf, WIRES } from '../raw-http-server.testing.ts';
import type { ModelEvent, ModelMessage } from '../port.ts';
import type { ReplayAnswer } from '../replay/script/script.ts';
import { startReplay, type ReplayServer } from '../replay/server.ts';

const TOOL = { name: 'weather', description: 'Weather of a city', inputSchema: { type: 'object' } };
const TWO_CALLS: ReplayAnswer = {
  text: 'Let me look at both.',
  toolCalls: [
    { name: 'weather', arguments: { city: 'Bern', days: [1, 2] } },
    { name: 'weather', arguments: { city: 'São Paulo 🌧' } },
  ],
  usage: { inputTokens: 100, outputTokens: 20, cachedInputTokens: 40 },
};

function replaying(answer: ReplayAnswer): Promise<ReplayServer> {
  return startReplay({ script: { rules: [{ answer }] }, clock: systemClock });
}

for (const wire of WIRES) {
  const answered = async (answer: ReplayAnswer, changes = {}): Promise<ModelEvent[]> => {
    await using server = await replaying(answer);
    return await eventsOf(modelOver(wire, server.url).stream(aRequest(changes), anOp()));
  };

  describe(`a model over ${wire}`, () => {
    it('the model emits its text in several events and ends once', async () => {
      const text = 'The sun shines on Zürich, and it is warm there. 🌞';
      const events = await answered({ text });
      assert.equal(textOf(events), text);
      assert.ok(events.length > 2);
      const end = events.at(-1);
      assert.equal(end?.type, 'end');
      assert.equal(end.stopReason, 'stop');
      assert.equal(end.model, 'model');
      assert.equal(events.filter((event) => event.type === 'end').length, 1);
    });

    it('the model emits parallel tool calls complete, in order, with unique ids', async () => {
      const events = await answered(TWO_CALLS);
      assert.deepEqual(callsOf(events), [
        { name: 'weather', arguments: { city: 'Bern', days: [1, 2] } },
        { name: 'weather', arguments: { city: 'São Paulo 🌧' } },
      ]);
      const ids = events.flatMap((event) => (event.type === 'tool-call' ? [event.call.id] : []));
      assert.equal(new Set(ids).size, 2);
      const end = events.at(-1);
      assert.deepEqual(end?.type === 'end' && [end.stopReason, end.usage], [
        'tool-calls',
        { inputTokens: 100, outputTokens: 20, cachedInputTokens: 40 },
      ]);
    });

    it('the model emits the same events for any chunking of the bytes', async () => {
      assert.deepEqual(await answered({ ...TWO_CALLS, chunkBytes: 7 }), await answered(TWO_CALLS));
    });

    it('the model emits reasoning as reasoning events', async () => {
      const events = await answered({ reasoning: 'first this, and then that, and so on', text: 'done' });
      const reasoning = events.map((event) => (event.type === 'reasoning' ? event.text : '')).join('');
      assert.equal(reasoning, 'first this, and then that, and so on');
      assert.equal(textOf(events), 'done');
    });

    it('the model emits no tool call of a truncated answer', async () => {
      const events = await answered({ ...TWO_CALLS, stopReason: 'length' });
      assert.deepEqual(callsOf(events), []);
      const end = events.at(-1);
      assert.equal(end?.type === 'end' && end.stopReason, 'length');
    });

    it('the model emits no tool call of a refused answer', async () => {
      const events = await answered({ ...TWO_CALLS, stopReason: 'refusal' });
      assert.deepEqual(callsOf(events), []);
      const end = events.at(-1);
      assert.equal(end?.type === 'end' && end.stopReason, 'refusal');
    });

    it('the model emits malformed arguments unchanged', async () => {
      const events = await answered({ toolCalls: [{ name: 'weather', arguments: '{"city": ' }] });
      const call = events.find((event) => event.type === 'tool-call');
      assert.equal(call?.call.arguments, '{"city": ');
    });

    it('the model sends the complete conversation, and the server reads the same messages', async () => {
      const messages: ModelMessage[] = [
        { role: 'user', text: 'weather in both?' },
        {
          role: 'assistant',
          text: 'Looking.',
          toolCalls: [
            { id: 'c1', name: 'weather', arguments: '{"city":"Bern"}' },
            { id: 'c2', name: 'weather', arguments: '{"city":"Rio"}' },
          ],
        },
        { role: 'tool', toolCallId: 'c1', name: 'weather', text: '{"sun":true}', isError: false },
        { role: 'tool', toolCallId: 'c2', name: 'weather', text: 'no such city', isError: true },
        { role: 'assistant', text: 'Half of it.', toolCalls: [] },
        { role: 'user', text: 'thanks' },
      ];
      await using server = await replaying({ text: 'ok' });
      const request = aRequest({ messages, tools: [TOOL], temperature: 0.5, responseFormat: 'json' });
      await eventsOf(modelOver(wire, server.url).stream(request, anOp()));
      const seen = server.requests[0];
      assert.deepEqual(seen?.conversation.messages, messages);
      assert.deepEqual(seen.conversation.tools, ['weather']);
      assert.equal(seen.conversation.maxOutputTokens, 1_000);
      assert.equal(seen.conversation.stream, true);
      assert.ok(seen.conversation.system.startsWith('be brief') && seen.conversation.system.includes('JSON'));
      assert.equal(seen.body['temperature'], 0.5);
      if (wire === 'anthropic-messages') {
        const roles = (seen.body['messages'] as { role: string }[]).map((message) => message.role);
        assert.deepEqual(roles, ['user', 'assistant', 'user', 'assistant', 'user']);
      }
      assert.equal(seen.body['store'], wire === 'openai-responses' ? false : undefined);
    });

    it('the stream throws TEMPER_CANCELLED when the caller cancels in the middle', async () => {
      await using server = await replaying({ text: 'word '.repeat(400), chunkBytes: 50, chunkDelayMilliseconds: 5 });
      const caller = new AbortController();
      const events: ModelEvent[] = [];
      await assert.rejects(
        async () => {
          for await (const event of modelOver(wire, server.url).stream(aRequest(), anOp(30_000, caller.signal))) {
            events.push(event);
            caller.abort();
          }
        },
        (error) => isTemperError(error, 'TEMPER_CANCELLED'),
      );
      assert.ok(events.length >= 1);
      assert.ok(events.every((event) => event.type !== 'end'));
    });

    it('the stream throws TEMPER_MODEL_TIMEOUT at its deadline', async () => {
      await using server = await replaying({ text: 'late', delayMilliseconds: 60_000 });
      const answer = eventsOf(modelOver(wire, server.url).stream(aRequest(), anOp(100)));
      await assert.rejects(answer, (error) => isTemperError(error, 'TEMPER_MODEL_TIMEOUT'));
    });

    it('the stream closes the connection when its consumer stops reading', async () => {
      await using server = await replaying({ text: 'word '.repeat(400), chunkBytes: 50, chunkDelayMilliseconds: 5 });
      for await (const event of modelOver(wire, server.url).stream(aRequest(), anOp())) {
        assert.equal(event.type, 'text');
        break;
      }
    });

    it('error statuses, errors in the stream and lost connections become typed errors', async () => {
      const code = async (answer: ReplayAnswer): Promise<string> => {
        try {
          await answered(answer);
        } catch (error) {
          if (isTemperError(error)) return `${error.code} ${error.retry}`;
          throw error;
        }
        return 'none';
      };
      assert.equal(await code({ error: { status: 429, retryAfter: 3 } }), 'TEMPER_MODEL_RATE_LIMITED 3000');
      assert.equal(await code({ error: { status: 529, type: 'overloaded_error' } }), 'TEMPER_MODEL_OVERLOADED backoff');
      assert.equal(await code({ text: 'a', inBandError: { type: 'server_error' } }), 'TEMPER_MODEL_OVERLOADED backoff');
      assert.equal(await code({ ...TWO_CALLS, cutAfterBytes: 700 }), 'TEMPER_MODEL_OVERLOADED backoff');
    });

    it('embed throws TEMPER_MODEL_NOT_FOUND without an embedding model', async () => {
      const model = modelOver(wire, 'http://127.0.0.1:9');
      await assert.rejects(model.embed(['a'], anOp()), (error) => isTemperError(error, 'TEMPER_MODEL_NOT_FOUND'));
    });
  });
}

describe('answers that are not streamed', () => {
  for (const [path, body] of [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hello' }] }],
    ['/v1/responses', { input: 'hello' }],
    ['/v1/messages', { messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 }],
  ] as const) {
    it(`an answer without streaming is one JSON body at ${path}`, async () => {
      await using server = await replaying(TWO_CALLS);
      const response = await fetch(`${server.url}${path}`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', ...body }),
      });
      assert.equal(response.headers.get('content-type'), 'application/json');
      const text = await response.text();
      assert.ok(text.includes('Let me look at both.') && text.includes('São Paulo'));
    });
  }
});
