import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import type { ModelEvent } from '../port.ts';
import {
  anOp,
  aRequest,
  modelOver,
  rawHttpServer,
  type Respond,
  WIRES,
  type WireName,
} from '../raw-http-server.testing.ts';
import type { AnswerLimits } from './guarded-fetch.ts';

const TOOL = { name: 'f', description: 'x', inputSchema: {} };

/** The head of a tool call, and a piece of its arguments. */
const CALL: Record<WireName, [head: string, piece: (text: string) => string]> = {
  'openai-chat': [
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]}\n\n',
    (text) =>
      `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"${text}"}}]}}]}\n\n`,
  ],
  'openai-responses': [
    'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}\n\n',
    (text) => `data: {"type":"response.function_call_arguments.delta","output_index":0,"delta":"${text}"}\n\n`,
  ],
  'anthropic-messages': [
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}\n\n',
    (text) =>
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"${text}"}}\n\n`,
  ],
};
/** Two calls with one index, and the end of the answer. */
const DUPLICATES: Record<WireName, string> = {
  'openai-chat': [
    '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\\"x\\":1}"}}]}}]}',
    '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\\"x\\":2}"}}]}}]}',
    '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
  ]
    .map((data) => `data: ${data}\n\n`)
    .join(''),
  'openai-responses': [
    '{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\\"x\\":1}"}}',
    '{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"b","name":"f","arguments":"{\\"x\\":2}"}}',
    '{"type":"response.completed","response":{"status":"completed","output":[]}}',
  ]
    .map((data) => `data: ${data}\n\n`)
    .join(''),
  'anthropic-messages': [
    '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"x\\":1}"}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"b","name":"f","input":{}}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use"}}',
    '{"type":"message_stop"}',
  ]
    .map((data) => `event: x\ndata: ${data}\n\n`.replace('x', JSON.parse(data).type as string))
    .join(''),
};

interface Outcome {
  events: ModelEvent[];
  error?: TemperError;
}

async function outcomeOf(wire: WireName, respond: Respond, limits: Partial<AnswerLimits> = {}): Promise<Outcome> {
  await using server = await rawHttpServer(respond);
  const events: ModelEvent[] = [];
  try {
    for await (const event of modelOver(wire, server.url, { limits }).stream(aRequest({ tools: [TOOL] }), anOp()))
      events.push(event);
    return { events };
  } catch (error) {
    assert.ok(isTemperError(error), String(error));
    return { events, error };
  }
}

/** Writes without an end, as fast as the client reads, and stops when the client leaves. */
const endless =
  (head: string, piece: Uint8Array | string, contentType = 'text/event-stream'): Respond =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': contentType });
    response.write(head);
    const write = async (): Promise<void> => {
      while (!response.destroyed) {
        response.write(piece);
        await setImmediate();
      }
    };
    void write();
  };

for (const wire of WIRES) {
  describe(`hostile answers over ${wire}`, () => {
    const [head, piece] = CALL[wire];

    for (const [title, type] of [
      ['a stream', 'text/event-stream'],
      ['a body', 'application/json'],
    ] as const) {
      it(`${title} of single bytes ends after a limited number of pieces`, async () => {
        const { error } = await outcomeOf(wire, endless('', ' ', type), { maxShortPieces: 100 });
        assert.equal(error?.code, 'TEMPER_MODEL_FORMAT');
        assert.match(error.message, /more than 100 pieces of less than 32 bytes/);
      });
    }

    it('short pieces are no error while they are few', async () => {
      const { events, error } = await outcomeOf(wire, (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const write = async (): Promise<void> => {
          for (const byte of Buffer.from(DUPLICATES[wire])) {
            response.write(Buffer.of(byte));
            await setImmediate();
          }
          response.end();
        };
        void write();
      });
      assert.equal(error, undefined);
      assert.equal(events.at(-1)?.type, 'end');
    });

    it('a line without an end is not kept beyond the size limit', async () => {
      const { error } = await outcomeOf(wire, endless('data: {"x":"', 'x'.repeat(65_536)), { maxBytes: 1_000_000 });
      assert.match(error?.message ?? '', /larger than 1000000 bytes/);
    });

    it('arguments of a tool call without an end are not kept beyond the size limit, and no call is emitted', async () => {
      const { events, error } = await outcomeOf(wire, endless(head, piece('x'.repeat(10_000))), { maxBytes: 300_000 });
      assert.match(error?.message ?? '', /larger than 300000 bytes/);
      assert.deepEqual(events, []);
    });

    it('invalid UTF-8 in the middle of a stream is an error, also when a character is cut into pieces', async () => {
      const whole = Buffer.from(piece('é'));
      const cut = whole.indexOf(0xc3) + 1;
      const { error } = await outcomeOf(wire, (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(Buffer.concat([Buffer.from(head), whole.subarray(0, cut)]));
        response.end(whole.subarray(cut + 1));
      });
      assert.equal(error?.code, 'TEMPER_MODEL_FORMAT');
      assert.match(error.message, /not UTF-8/);
    });

    it('two tool calls with one index never mix their arguments', async () => {
      const { events } = await outcomeOf(wire, (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(DUPLICATES[wire]);
      });
      const calls = events.flatMap((event) => (event.type === 'tool-call' ? [event.call] : []));
      const [first, second] = calls;
      assert.deepEqual(first, { id: 'a', name: 'f', arguments: '{"x":1}' });
      // In the stream of Anthropic the second block gets no arguments.
      const given = wire === 'anthropic-messages' ? '{}' : '{"x":2}';
      assert.deepEqual(second, { id: 'b', name: 'f', arguments: given });
    });
  });
}
