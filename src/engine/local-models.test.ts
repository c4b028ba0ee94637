import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createAgentLoop } from '../agent/loop/loop.ts';
import { anAgent, scriptedInvoker } from '../agent/loop/scripted-loop.testing.ts';
import { createRecordSessionStore } from '../agent/session/session-store.ts';
import { openLedgerBook } from '../ledger/ledger.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import { type NamedModelsConfig, openModels } from '../models/named-models.ts';
import type { ProviderType } from '../models/providers.ts';
import { anOp, aRequest, eventsOf, rawHttpServer } from '../models/raw-http-server.testing.ts';
import { startReplay } from '../models/replay/server.ts';
import { localModels } from './local-models.ts';

/** The frames of an answer "first second", cut after the first word. */
const FRAMES: Partial<Record<ProviderType, readonly [string, string]>> = {
  openai: [
    'data: {"model":"m","choices":[{"index":0,"delta":{"content":"first"},"finish_reason":null}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{"content":" second"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  ],
  'openai-responses': [
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","output_index":0,"delta":"first"}\n\n',
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","output_index":0,"delta":" second"}\n\n' +
      'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","model":"m","output":[]}}\n\n',
  ],
  anthropic: [
    'event: message_start\ndata: {"type":"message_start","message":{"id":"a","model":"m","content":[],"usage":{}}}\n\n' +
      'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n' +
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"first"}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" second"}}\n\n' +
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n' +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ],
};

async function open(config: NamedModelsConfig, tokensPerHour = 1_000_000) {
  const book = await openLedgerBook(memoryRecordStore(), systemClock);
  const ledger = book.ledger([{ name: 'agent/a', quotas: { tokensPerHour }, prefix: 'spec.quotas.' }]);
  const deps = { clock: systemClock, random: () => 0, environment: {}, retry: { maxAttempts: 1 } };
  return { ledger, models: localModels(openModels(config, deps), { ledger, ids: ulids }) };
}

describe('localModels', () => {
  for (const [type, [beginning, rest]] of Object.entries(FRAMES)) {
    it(`the first text of an answer over ${type} leaves the agent loop as an event before the provider sends the rest`, async () => {
      const firstEvent = Promise.withResolvers<void>();
      await using server = await rawHttpServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(beginning);
        // A loop that buffers waits for the rest, which is never sent: the message then fails at its deadline.
        void firstEvent.promise.then(() => response.end(rest));
      });
      const baseUrl = type === 'anthropic' ? server.url : `${server.url}/v1`;
      const provider = { name: 'scripted', type: type as ProviderType, baseUrl };
      const { models } = await open({ providers: [provider], aliases: {} });
      const loop = createAgentLoop({
        model: models.withFallbacks(['scripted/other']),
        invoker: scriptedInvoker({}),
        sessions: createRecordSessionStore(memoryRecordStore(), systemClock, { agent: 'a', namespace: 'n' }),
        clock: systemClock,
      });
      const deltas: string[] = [];
      const { reply } = await loop.handle(
        { session: 's-1', rootMessage: 'root', text: 'hi' },
        anAgent(),
        (event) => {
          if (event.type !== 'message' || !event.delta) return;
          deltas.push(event.text);
          firstEvent.resolve();
        },
        anOp(),
      );
      assert.equal(reply, 'first second');
      assert.deepEqual(deltas, ['first', ' second']);
    });
  }

  it('a fallback answers for a failing model, both are charged, and the quota of the agent applies', async () => {
    const rules = [
      { when: { model: 'busy' }, answer: { error: { status: 404, type: 'not_found_error' } } },
      { answer: { text: 'here', usage: { inputTokens: 100, outputTokens: 20 } } },
    ];
    await using replay = await startReplay({ script: { rules }, clock: systemClock });
    const baseUrl = `${replay.url}/v1`;
    const { ledger, models } = await open(
      {
        providers: [{ name: 'local', type: 'openai', baseUrl, models: [{ name: 'small', contextWindow: 8_000 }] }],
        aliases: { 'default/default': 'local/busy', 'default/second': 'local/small' },
      },
      1_500,
    );
    assert.equal(models.resolve('default/default'), 'local/busy');
    assert.equal(models.contextTokens('default/second'), 8_000);
    const request = aRequest({ model: 'default/default', maxOutputTokens: 1_400 });
    const events = await eventsOf(models.withFallbacks(['default/second']).stream(request, anOp()));
    assert.equal(events.at(-1)?.type, 'end');
    const { hour } = await ledger.usage();
    assert.deepEqual([hour.inputTokens, hour.outputTokens, hour.costMicros], [100, 20, 160]);
    await assert.rejects(eventsOf(models.model.stream(request, anOp())), (error) =>
      isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
  });
});
