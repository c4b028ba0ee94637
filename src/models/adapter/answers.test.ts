import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import {
  aRequest,
  anOp,
  rawHttpServer,
  callsOf,
  eventsOf,
  modelOver,
  textOf,
  type WireName,
} from '../raw-http-server.testing.ts';
import type { ModelEvent, ModelRequest } from '../port.ts';

/** The events of an answer that consists of the given stream events. */
async function streamed(wire: WireName, events: object[], changes: Partial<ModelRequest> = {}): Promise<ModelEvent[]> {
  const frames = events.map((event) => {
    const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  await using server = await rawHttpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(frames.join(''));
  });
  return await eventsOf(modelOver(wire, server.url).stream(aRequest(changes), anOp()));
}

const chunk = (delta: object, finish: string | null = null): object => ({
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const fragment = (piece: object): object => chunk({ tool_calls: [piece] });
const reasonOf = (events: readonly ModelEvent[]): string | undefined => {
  const end = events.at(-1);
  return end?.type === 'end' ? end.stopReason : undefined;
};

describe('deviations of Chat Completions servers', () => {
  it('a refusal in a separate field becomes text and stop reason', async () => {
    const events = await streamed('openai-chat', [
      chunk({ refusal: 'I cannot ' }),
      chunk({ refusal: 'help.' }, 'stop'),
    ]);
    assert.equal(textOf(events), 'I cannot help.');
    assert.equal(reasonOf(events), 'refusal');
  });

  it('calls with the same index 0 and different ids stay separate', async () => {
    const events = await streamed('openai-chat', [
      fragment({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }),
      fragment({ index: 0, id: 'b', function: { name: 'f', arguments: '{"x":2}' } }),
      chunk({}, 'tool_calls'),
    ]);
    assert.deepEqual(callsOf(events), [
      { name: 'f', arguments: { x: 1 } },
      { name: 'f', arguments: { x: 2 } },
    ]);
  });

  it('the adapter assembles calls without an index, without an id or with an object as arguments', async () => {
    const events = await streamed('openai-chat', [
      fragment({ id: 'a', function: { name: 'f', arguments: '{"x"' } }),
      fragment({ id: 'a', function: { arguments: ':1}' } }),
      fragment({ index: 7, function: { name: 'g', arguments: { y: 2 } } }),
      chunk({}, 'stop'),
    ]);
    assert.deepEqual(callsOf(events), [
      { name: 'f', arguments: { x: 1 } },
      { name: 'g', arguments: { y: 2 } },
    ]);
    assert.equal(reasonOf(events), 'tool-calls');
  });

  it('a call without arguments gets an empty object, and a call without a name is an error', async () => {
    const call = { index: 0, id: 'a', function: { name: 'f', arguments: '' } };
    assert.deepEqual(callsOf(await streamed('openai-chat', [fragment(call), chunk({}, 'tool_calls')])), [
      { name: 'f', arguments: {} },
    ]);
    const nameless = { ...call, function: { arguments: '{}' } };
    await assert.rejects(streamed('openai-chat', [fragment(nameless), chunk({}, 'tool_calls')]), (error) =>
      isTemperError(error, 'TEMPER_MODEL_FORMAT'),
    );
  });

  it('the adapter makes duplicate ids unique', async () => {
    const call = (index: number): object => fragment({ index, id: 'same', function: { name: 'f', arguments: '{}' } });
    const events = await streamed('openai-chat', [call(0), call(1), chunk({}, 'tool_calls')]);
    const ids = events.flatMap((event) => (event.type === 'tool-call' ? [event.call.id] : []));
    assert.deepEqual(ids, ['same', 'same_2']);
  });

  it('the adapter emits no tool call for an unknown stop reason', async () => {
    const call = fragment({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } });
    const events = await streamed('openai-chat', [call, chunk({}, 'novel_reason')]);
    assert.deepEqual(callsOf(events), []);
    assert.equal(reasonOf(events), 'other');
  });

  it('a parallel wrapper stays unchanged when a tool of that name was offered, or when it is malformed', async () => {
    const wrapper = (given: object): object =>
      fragment({ index: 0, id: 'a', function: { name: 'parallel', arguments: JSON.stringify(given) } });
    const uses = { tool_uses: [{ recipient_name: 'functions.f', parameters: {} }] };
    const offered = { tools: [{ name: 'parallel', description: '', inputSchema: { type: 'object' } }] };
    const names = async (given: object, changes = {}): Promise<string[]> =>
      callsOf(await streamed('openai-chat', [wrapper(given), chunk({}, 'tool_calls')], changes)).map(
        (call) => call.name,
      );
    assert.deepEqual(await names(uses), ['f']);
    assert.deepEqual(await names(uses, offered), ['parallel']);
    assert.deepEqual(await names({ tool_uses: [{ recipient_name: 'f', parameters: {} }] }), ['parallel']);
    assert.deepEqual(await names({ tool_uses: [...uses.tool_uses, 5] }), ['parallel']);
    assert.deepEqual(await names({}), ['parallel']);
  });
});

describe('deviations of Responses servers', () => {
  const completed = (output: object[], changes = {}): object => ({
    type: 'response.completed',
    response: { status: 'completed', model: 'm', output, ...changes },
  });
  const message = (content: object): object => ({ type: 'message', content: [content] });

  it('a refusal becomes text and stop reason, streamed or not', async () => {
    const said = message({ type: 'refusal', refusal: 'No.' });
    const delta = { type: 'response.refusal.delta', output_index: 0, delta: 'No.' };
    for (const events of [[completed([said])], [delta, completed([said])]]) {
      const answer = await streamed('openai-responses', events);
      assert.equal(textOf(answer), 'No.');
      assert.equal(reasonOf(answer), 'refusal');
    }
  });

  it('two equal events in a row are one event', async () => {
    const delta = { type: 'response.output_text.delta', output_index: 0, sequence_number: 4, delta: 'ha' };
    const next = { ...delta, sequence_number: 5 };
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
    const done = { type: 'response.output_item.done', output_index: 1, item: call };
    const answer = await streamed('openai-responses', [delta, delta, next, done, done, completed([])]);
    assert.equal(textOf(answer), 'haha');
    assert.equal(callsOf(answer).length, 1);
  });

  it('an incomplete response has the stop reason length or refusal', async () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a"' };
    for (const [reason, stopReason] of [
      ['max_output_tokens', 'length'],
      ['content_filter', 'refusal'],
    ]) {
      const end = { ...completed([call], { status: 'incomplete', incomplete_details: { reason } }) };
      const answer = await streamed('openai-responses', [{ ...end, type: 'response.incomplete' }]);
      assert.equal(reasonOf(answer), stopReason);
      assert.ok(answer.every((event) => event.type !== 'tool-call'));
    }
  });
});

describe('deviations of Messages servers', () => {
  const start = (content: object[] = []): object => ({
    type: 'message_start',
    message: { id: 'one', model: 'm', content, usage: { input_tokens: 5, cache_creation_input_tokens: 3 } },
  });
  const block = { type: 'tool_use', id: 't', name: 'f', input: {} };
  const begin = { type: 'content_block_start', index: 0, content_block: block };
  const json = (partial_json: string): object => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json },
  });
  const over = [{ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: {} }, { type: 'message_stop' }];

  it('a message or block that is started twice is one', async () => {
    const said = [{ type: 'text', text: 'hi' }];
    const events = await streamed('anthropic-messages', [
      start(said),
      start(said),
      begin,
      json('{"a"'),
      begin,
      json(':1}'),
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_stop', index: 0 },
      ...over,
    ]);
    assert.equal(textOf(events), 'hi');
    assert.deepEqual(callsOf(events), [{ name: 'f', arguments: { a: 1 } }]);
  });

  it('cache creation tokens count as input tokens', async () => {
    const events = await streamed('anthropic-messages', [
      start(),
      begin,
      { type: 'content_block_stop', index: 0 },
      ...over,
    ]);
    const end = events.at(-1);
    assert.deepEqual(end?.type === 'end' && end.usage, {
      inputTokens: 8,
      outputTokens: 0,
      cachedInputTokens: 0,
      cacheCreationInputTokens: 3,
    });
  });

  it('a complete answer with an incomplete call is an error', async () => {
    await assert.rejects(streamed('anthropic-messages', [start(), begin, json('{"a"'), ...over]), (error) =>
      isTemperError(error, 'TEMPER_MODEL_FORMAT'),
    );
  });

  it('a delta of a block that was not started is an error', async () => {
    await assert.rejects(streamed('anthropic-messages', [start(), json('{}'), ...over]), (error) =>
      isTemperError(error, 'TEMPER_MODEL_FORMAT'),
    );
  });

  it('the adapter ignores events and deltas of unknown types', async () => {
    const novel = { type: 'content_block_delta', index: 0, delta: { type: 'novel_delta', x: 1 } };
    const events = await streamed('anthropic-messages', [
      start(),
      { type: 'novel_event' },
      begin,
      novel,
      { type: 'content_block_stop', index: 0 },
      ...over,
    ]);
    assert.deepEqual(callsOf(events), [{ name: 'f', arguments: {} }]);
  });
});
