import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { APIError } from 'openai';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ModelEvent } from '../../models/port.ts';
import { createModelEndpoint, type FetchHandler, type ServedModel } from './model-endpoint.ts';
import type { ServedRequest } from './served-format.ts';
import { chatFormat } from './chat-format.ts';
import { messagesFormat } from './messages-format.ts';

const END: ModelEvent = {
  type: 'end',
  stopReason: 'stop',
  usage: { inputTokens: 12, outputTokens: 3, cachedInputTokens: 2 },
  model: 'replay/scripted',
};
const ANSWER: ModelEvent[] = [
  { type: 'reasoning', text: 'hm' },
  { type: 'text', text: 'I ' },
  { type: 'text', text: 'look' },
  { type: 'tool-call', call: { id: 'c-1', name: 'file_read', arguments: '{"path":"a"}' } },
  { ...END, stopReason: 'tool-calls' },
];

interface Served {
  handler: FetchHandler;
  requests: ServedRequest[];
}

function served(events: readonly ModelEvent[], error?: Error): Served {
  const requests: ServedRequest[] = [];
  const model: ServedModel = async function* (request) {
    requests.push(request);
    yield* events;
    if (error !== undefined) throw error;
  };
  return { handler: createModelEndpoint(model, () => 'id-1'), requests };
}

const fetchOf =
  ({ handler }: Served) =>
  (url: string | URL | Request, init?: RequestInit): Promise<Response> =>
    handler(new Request(url, init));

const openai = (endpoint: Served): OpenAI =>
  new OpenAI({ baseURL: 'http://temper.invalid/v1', apiKey: 'none', fetch: fetchOf(endpoint) });
const anthropic = (endpoint: Served): Anthropic =>
  new Anthropic({ baseURL: 'http://temper.invalid', apiKey: 'none', fetch: fetchOf(endpoint) });

const CHAT = {
  model: 'gpt-any',
  temperature: 0.5,
  max_tokens: 100,
  seed: 7,
  messages: [
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: [{ type: 'text', text: 'read' }] },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c-0', type: 'function', function: { name: 'file_read', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c-0', content: 'Error: no such file' },
  ],
  tools: [{ type: 'function', function: { name: 'file_read', parameters: { type: 'object' } } }],
} satisfies OpenAI.ChatCompletionCreateParamsNonStreaming;
const MESSAGES: Anthropic.MessageCreateParamsNonStreaming = {
  model: 'claude-any',
  max_tokens: 100,
  system: [{ type: 'text', text: 'Be short.' }],
  messages: [
    { role: 'user', content: 'read' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c-0', name: 'file_read', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c-0', content: 'no such file', is_error: true }] },
  ],
  tools: [{ name: 'file_read', input_schema: { type: 'object' } }],
};
const READ_MESSAGES = [
  { role: 'user', text: 'read' },
  { role: 'assistant', text: '', toolCalls: [{ id: 'c-0', name: 'file_read', arguments: '{}' }] },
  { role: 'tool', toolCallId: 'c-0', name: 'file_read', text: 'no such file', isError: true },
];

describe('the model endpoint', () => {
  it("OpenAI's client gets an answer with a call and the usage, and its request arrives whole", async () => {
    const endpoint = served(ANSWER);
    const { choices, usage } = await openai(endpoint).chat.completions.create(CHAT);
    assert.equal(choices[0]?.message.content, 'I look');
    const [call] = choices[0]?.message.tool_calls ?? [];
    assert.ok(call?.type === 'function' && call.function.arguments === '{"path":"a"}');
    assert.deepEqual([choices[0]?.finish_reason, usage?.total_tokens], ['tool_calls', 15]);
    const [request] = endpoint.requests;
    assert.deepEqual(request?.messages, READ_MESSAGES);
    assert.deepEqual(
      [request?.system, request?.temperature, request?.maxOutputTokens, request?.tools],
      ['Be short.', 0.5, 100, [{ name: 'file_read', description: '', inputSchema: { type: 'object' } }]],
    );
  });

  it("OpenAI's client gets a stream", async () => {
    const stream = openai(served(ANSWER)).chat.completions.stream({
      ...CHAT,
      stream: true,
      stream_options: { include_usage: true },
    });
    const { choices, usage } = await stream.finalChatCompletion();
    assert.equal(choices[0]?.message.content, 'I look');
    const [call] = choices[0]?.message.tool_calls ?? [];
    assert.ok(call?.type === 'function' && call.function.name === 'file_read');
    assert.deepEqual([usage?.prompt_tokens, usage?.completion_tokens], [12, 3]);
  });

  it("Anthropic's client gets an answer, whole and as a stream, and its request arrives whole", async () => {
    const endpoint = served(ANSWER);
    const whole = await anthropic(endpoint).messages.create(MESSAGES);
    const streamed = await anthropic(endpoint).messages.stream(MESSAGES).finalMessage();
    for (const message of [whole, streamed]) {
      const [thought, text, call] = message.content;
      assert.ok(thought?.type === 'thinking' && thought.thinking === 'hm');
      assert.ok(text?.type === 'text' && text.text === 'I look');
      assert.ok(call?.type === 'tool_use' && call.name === 'file_read');
      assert.deepEqual(call.input, { path: 'a' });
      assert.equal(message.stop_reason, 'tool_use');
      assert.deepEqual([message.usage.input_tokens, message.usage.output_tokens], [10, 3]);
    }
    const [request] = endpoint.requests;
    assert.deepEqual(request?.messages, READ_MESSAGES);
    assert.deepEqual([request?.system, request?.maxOutputTokens], ['Be short.', 100]);
  });

  it('an error before the answer has its status and is not repeated by the client', async () => {
    for (const [code, status] of [
      ['TEMPER_QUOTA_EXCEEDED', 429],
      ['TEMPER_MODEL_CONTEXT_OVERFLOW', 400],
      ['TEMPER_MODEL_OVERLOADED', 503],
    ] as const) {
      const endpoint = served([], new TemperError(code, 'no more'));
      await assert.rejects(openai(endpoint).chat.completions.create(CHAT), (error) => {
        assert.ok(error instanceof APIError && error.status === status);
        return error.message.includes(`${code}: no more`);
      });
      assert.equal(endpoint.requests.length, 1, code);
    }
  });

  it('an error inside an answer ends the stream with an error', async () => {
    const endpoint = served(ANSWER.slice(0, 2), new TemperError('TEMPER_MODEL_TIMEOUT', 'too slow'));
    await assert.rejects(openai(endpoint).chat.completions.stream(CHAT).finalChatCompletion(), /too slow/);
    await assert.rejects(anthropic(endpoint).messages.stream(MESSAGES).finalMessage(), /too slow/);
  });

  it('the text of a defect does not reach the client', async () => {
    const endpoint = served([], new Error('secret path'));
    await assert.rejects(
      openai(endpoint).chat.completions.create(CHAT),
      (error) => error instanceof Error && /TEMPER_INTERNAL/.test(error.message) && !/secret/.test(error.message),
    );
  });

  it('a program has four calls in work at most, and a client that leaves frees its place', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting: ServedModel = async function* (_request, signal) {
      yield { type: 'text', text: 'a' };
      await Promise.race([promise, new Promise((done) => signal.addEventListener('abort', done, { once: true }))]);
      yield END;
    };
    const handler = createModelEndpoint(waiting, () => 'id');
    const send = (): Promise<Response> => post(handler, '/v1/chat/completions', { ...CHAT, stream: true });
    const open = await Promise.all([send(), send(), send(), send()]);
    assert.equal((await send()).status, 429);
    resolve();
    await open[0]?.text();
    await open[1]?.body?.cancel();
    assert.deepEqual(
      await Promise.all([send(), send(), send()].map(async (sent) => (await sent).status)),
      [200, 200, 429],
    );
  });
});

function post(handler: FetchHandler, path: string, body: JsonObject | string): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return handler(new Request(`http://temper.invalid${path}`, { method: 'POST', body: text }));
}

describe('requests that the model endpoint refuses', () => {
  const user = { role: 'user', content: 'hi' };
  const call = { type: 'tool_result', tool_use_id: 'x', content: 'y' };

  for (const [member, body] of [
    ['messages', {}],
    ['messages', { messages: [] }],
    ['messages', { messages: Array.from({ length: 10_001 }, () => user) }],
    ['messages[0]', { messages: [7] }],
    ['messages[0].role', { messages: [{ role: 'wizard', content: 'hi' }] }],
    ['messages[0].content[0]', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] }],
    ['messages[0].tool_call_id', { messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }],
    ['tools', { messages: [user], tools: Array.from({ length: 257 }, () => ({})) }],
    ['tools[0]', { messages: [user], tools: [{ type: 'web_search' }] }],
    ['tools[0].function.name', { messages: [user], tools: [{ type: 'function', function: { name: '' } }] }],
    ['tool_choice', { messages: [user], tool_choice: 'required' }],
    ['response_format', { messages: [user], response_format: { type: 'json_schema' } }],
    ['n', { messages: [user], n: 2 }],
    ['stop', { messages: [user], stop: ['x'] }],
    ['max_completion_tokens', { messages: [user], max_tokens: -1 }],
    ['temperature', { messages: [user], temperature: 'hot' }],
  ] as [string, JsonObject][]) {
    it(`a chat request is refused by the name of ${member}: ${JSON.stringify(body).slice(0, 60)}`, () => {
      assert.throws(() => chatFormat.read(body), refusalOf(member));
    });
  }

  for (const [member, body] of [
    ['messages[0].role', { messages: [{ role: 'system', content: 'hi' }] }],
    ['messages[0].content[0]', { messages: [{ role: 'user', content: [{ type: 'image', source: {} }] }] }],
    ['messages[0].content[0].tool_use_id', { messages: [{ role: 'user', content: [call] }] }],
    ['tools[0]', { messages: [user], tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['tool_choice', { messages: [user], tool_choice: { type: 'any' } }],
    ['mcp_servers', { messages: [user], mcp_servers: [{}] }],
    ['stop_sequences', { messages: [user], stop_sequences: ['x'] }],
    ['system[0]', { messages: [user], system: [{ type: 'image' }] }],
  ] as [string, JsonObject][]) {
    it(`a messages request is refused by the name of ${member}: ${JSON.stringify(body).slice(0, 60)}`, () => {
      assert.throws(() => messagesFormat.read(body), refusalOf(member));
    });
  }

  it('a body that is too large, too deep or no object is refused before it is read', async () => {
    const { handler, requests } = served(ANSWER);
    for (const [body, message] of [
      ['x'.repeat(9_000_000), /larger than/],
      [`{"messages": ${'['.repeat(80)}${']'.repeat(80)}}`, /64 levels/],
      ['[]', /not a JSON object/],
      ['{', /not a JSON object/],
    ] as const) {
      const response = await post(handler, '/v1/chat/completions', body);
      assert.equal(response.status, 400);
      assert.match(await response.text(), message);
    }
    assert.equal(requests.length, 0);
  });

  it('another path and another method are not served', async () => {
    const { handler } = served(ANSWER);
    assert.equal((await post(handler, '/v1/responses', {})).status, 404);
    assert.equal((await handler(new Request('http://temper.invalid/v1/messages'))).status, 404);
    const models = await handler(new Request('http://temper.invalid/v1/models'));
    assert.match(await models.text(), /"id":"temper"/);
  });
});

function refusalOf(member: string): (error: unknown) => boolean {
  return (error) => isTemperError(error, 'TEMPER_MODEL_FORMAT') && error.message.startsWith(`${member} `);
}
