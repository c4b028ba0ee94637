import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import type { ServerResponse } from 'node:http';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import {
  aRequest,
  anOp,
  rawHttpServer,
  eventsOf,
  modelOver,
  WIRES,
  type Respond,
  type WireName,
} from '../raw-http-server.testing.ts';
import type { AdapterOptions } from './adapter.ts';
import type { ModelEvent, ModelRequest } from '../port.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const SSE = { 'content-type': 'text/event-stream' };

interface FailedStream {
  events: ModelEvent[];
  error: TemperError;
}

/** The events before the error, and the error. */
async function failing(
  wire: WireName,
  respond: Respond,
  options: Partial<AdapterOptions> = {},
  request: ModelRequest = aRequest(),
  onEvent: () => void = () => {},
): Promise<FailedStream> {
  await using server = await rawHttpServer(respond);
  const events: ModelEvent[] = [];
  try {
    for await (const event of modelOver(wire, server.url, options).stream(request, anOp())) {
      events.push(event);
      onEvent();
    }
  } catch (error) {
    assert.ok(isTemperError(error), `typed: ${String(error)}`);
    return { events, error };
  }
  assert.fail(`no error after ${JSON.stringify(events)}`);
}

const answering =
  (status: number, body: unknown, headers: Record<string, string> = {}): Respond =>
  (_request, response) => {
    response.writeHead(status, { ...JSON_TYPE, ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

const streaming =
  (...frames: string[]): Respond =>
  (_request, response) => {
    response.writeHead(200, SSE);
    for (const frame of frames) response.write(frame);
    response.end();
  };

const openaiError = (code: string | null, message = 'no', type = 'some_error'): unknown => ({
  error: { message, type, code, param: null },
});
const anthropicError = (type: string, message = 'no'): unknown => ({ type: 'error', error: { type, message } });

type Case = [title: string, status: number, openai: unknown, anthropic: unknown, code: ErrorCode];
const CASES: Case[] = [
  [
    'a rate limit',
    429,
    openaiError('rate_limit_exceeded'),
    anthropicError('rate_limit_error'),
    'TEMPER_MODEL_RATE_LIMITED',
  ],
  ['an overload (503)', 503, openaiError(null), anthropicError('api_error'), 'TEMPER_MODEL_OVERLOADED'],
  ['an overload (529)', 529, openaiError(null), anthropicError('overloaded_error'), 'TEMPER_MODEL_OVERLOADED'],
  ['a server error', 500, 'not json at all', 'not json at all', 'TEMPER_MODEL_OVERLOADED'],
  ['a gateway timeout', 504, '', '', 'TEMPER_MODEL_TIMEOUT'],
  [
    'a rejected key',
    401,
    openaiError('invalid_api_key'),
    anthropicError('authentication_error'),
    'TEMPER_MODEL_UNAUTHORIZED',
  ],
  ['a missing permission', 403, openaiError(null), anthropicError('permission_error'), 'TEMPER_MODEL_UNAUTHORIZED'],
  [
    'an exhausted quota',
    429,
    openaiError('insufficient_quota'),
    anthropicError('billing_error'),
    'TEMPER_MODEL_BILLING',
  ],
  [
    'a low balance',
    400,
    openaiError('billing_not_active'),
    anthropicError('invalid_request_error', 'Your credit balance is too low to access the API.'),
    'TEMPER_MODEL_BILLING',
  ],
  [
    'a conversation that is too long',
    400,
    openaiError('context_length_exceeded'),
    anthropicError('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
  ],
  [
    'a body that is too large',
    413,
    'request entity too large',
    anthropicError('request_too_large', 'Request exceeds the maximum size'),
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
  ],
  ...[
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    'the request exceeds the available context size (4096), try increasing it',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'input length and `max_tokens` exceed context limit: 198000 + 8000 > 200000',
    'Input is too long for requested model.',
  ].map(
    (message): Case => [
      `a conversation that is too long, in the words "${message.slice(0, 40)}"`,
      400,
      openaiError(null, message),
      anthropicError('invalid_request_error', message),
      'TEMPER_MODEL_CONTEXT_OVERFLOW',
    ],
  ),
  [
    'an unknown model',
    404,
    openaiError('model_not_found'),
    anthropicError('not_found_error'),
    'TEMPER_MODEL_NOT_FOUND',
  ],
  ['a malformed request', 400, openaiError(null), anthropicError('invalid_request_error'), 'TEMPER_MODEL_FORMAT'],
  ['a redirect', 307, '', '', 'TEMPER_MODEL_FORMAT'],
  [
    'an error in a body of status 200',
    200,
    openaiError('server_error'),
    anthropicError('overloaded_error'),
    'TEMPER_MODEL_OVERLOADED',
  ],
  ['another body of status 200', 200, { hello: 1 }, { hello: 1 }, 'TEMPER_MODEL_FORMAT'],
  ['a body of status 200 that is not JSON', 200, '<html>', '<html>', 'TEMPER_MODEL_FORMAT'],
];

/** The start of an answer, and a tool call that is cut in the middle of its arguments. */
const BEGINNING: Record<WireName, string> = {
  'openai-chat': `data: {"model":"m","choices":[{"index":0,"delta":{"content":"well"},"finish_reason":null}]}\n\n`,
  'openai-responses':
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","output_index":0,"delta":"well"}\n\n',
  'anthropic-messages':
    'event: message_start\ndata: {"type":"message_start","message":{"id":"a","model":"m","content":[],"usage":{}}}\n\n' +
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"well"}}\n\n',
};
const HALF_CALL: Record<WireName, string> = {
  'openai-chat':
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\\"a\\":"}}]},"finish_reason":null}]}\n\n',
  'openai-responses':
    'event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\\"a\\":"}\n\n',
  'anthropic-messages':
    'event: content_block_start\ndata: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}\n\n' +
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":"}}\n\n',
};
/** A complete answer with the text BAD. */
const WHOLE: Record<WireName, string> = {
  'openai-chat': '{"model":"m","choices":[{"index":0,"message":{"content":"BAD"},"finish_reason":"stop"}]}',
  'openai-responses':
    '{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"BAD"}]}]}',
  'anthropic-messages': '{"content":[{"type":"text","text":"BAD"}],"stop_reason":"end_turn"}',
};
const IN_BAND: Record<WireName, string> = {
  'openai-chat': 'data: {"error":{"code":429,"message":"slow down"}}\n\n',
  'openai-responses': 'event: error\ndata: {"type":"error","code":"rate_limit_exceeded","message":"slow down"}\n\n',
  'anthropic-messages':
    'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}\n\n',
};

for (const wire of WIRES) {
  describe(`failures of ${wire}`, () => {
    for (const [title, status, openai, anthropic, code] of CASES) {
      it(`${title} becomes ${code}`, async () => {
        const body = wire === 'anthropic-messages' ? anthropic : openai;
        const { events, error } = await failing(wire, answering(status, body, { location: 'http://127.0.0.1:9/' }));
        assert.equal(error.code, code, error.message);
        assert.deepEqual(events, []);
      });
    }

    it('the adapter reads retry-after in seconds, milliseconds or as a date', async () => {
      const wait = async (headers: Record<string, string>): Promise<unknown> =>
        (await failing(wire, answering(429, openaiError(null), headers))).error.retry;
      assert.equal(await wait({ 'retry-after': '7' }), 7_000);
      assert.equal(await wait({ 'retry-after-ms': '250' }), 250);
      assert.equal(await wait({}), 'backoff');
      assert.equal(await wait({ 'retry-after': 'soon' }), 'backoff');
      const soon = await wait({ 'retry-after': new Date(Date.now() + 60_000).toUTCString() });
      assert.ok(typeof soon === 'number' && soon > 30_000 && soon <= 61_000);
    });

    it('an error event in the middle of a stream becomes a typed error', async () => {
      const { events, error } = await failing(wire, streaming(BEGINNING[wire], IN_BAND[wire]));
      assert.equal(error.code, 'TEMPER_MODEL_RATE_LIMITED');
      assert.deepEqual(events, [{ type: 'text', text: 'well' }]);
    });

    it('the adapter emits no tool call and no end when the stream stops inside a tool call', async () => {
      const { events, error } = await failing(wire, streaming(BEGINNING[wire], HALF_CALL[wire]));
      assert.equal(error.code, 'TEMPER_MODEL_FORMAT');
      assert.equal(error.retry, 'backoff');
      assert.deepEqual(events, [{ type: 'text', text: 'well' }]);
    });

    it('a connection reset in the middle of a stream becomes TEMPER_MODEL_OVERLOADED', async () => {
      const received = Promise.withResolvers<void>();
      const respond: Respond = (_request, response) => {
        response.writeHead(200, SSE);
        response.write(BEGINNING[wire]);
        void received.promise.then(() => response.socket?.resetAndDestroy());
      };
      const { events, error } = await failing(wire, respond, {}, aRequest(), received.resolve);
      assert.equal(error.code, 'TEMPER_MODEL_OVERLOADED');
      assert.equal(error.retry, 'backoff');
      assert.deepEqual(events, [{ type: 'text', text: 'well' }]);
    });

    it('an event that is not JSON becomes TEMPER_MODEL_FORMAT', async () => {
      const { error } = await failing(wire, streaming(BEGINNING[wire], 'event: message_delta\ndata: {"type":\n\n'));
      assert.equal(error.code, 'TEMPER_MODEL_FORMAT');
    });

    it('the adapter rejects text that is not UTF-8 instead of repairing it', async () => {
      const { error } = await failing(wire, (_request, response) => {
        response.writeHead(200, JSON_TYPE);
        const [before = '', after = ''] = WHOLE[wire].split('BAD');
        response.end(Buffer.concat([Buffer.from(before), Buffer.from([0x61, 0xff, 0xfe]), Buffer.from(after)]));
      });
      assert.equal(error.code, 'TEMPER_MODEL_FORMAT');
      assert.match(error.message, /not UTF-8/);
    });

    it('the adapter stops reading an endless answer at its size limit', async () => {
      const { error } = await failing(wire, endless(': nothing\n\n'.repeat(1_000)), { limits: { maxBytes: 200_000 } });
      assert.equal(error.code, 'TEMPER_MODEL_FORMAT');
      assert.match(error.message, /larger than 200000 bytes/);
    });

    it('the adapter refuses an answer of very many lists before it is parsed, in one event, in several lines or as a body', async () => {
      const lists = '[],'.repeat(3_000);
      const limits = { limits: { maxContainers: 2_000 } };
      for (const respond of [
        streaming(BEGINNING[wire], `data: {"x":[${lists}0]}\n\n`),
        streaming(BEGINNING[wire], `data: [${lists}\n`.repeat(2), '\n'),
        answering(200, `{"x":[\n\n${lists}\n\n0]}`),
      ]) {
        const { error } = await failing(wire, respond, limits);
        assert.equal(error.code, 'TEMPER_MODEL_FORMAT');
        assert.match(error.message, /more than 2000 lists and objects at once/);
      }
      const { error } = await failing(wire, answering(500, `{"x":[${lists}0]}`), limits);
      assert.equal(error.code, 'TEMPER_MODEL_OVERLOADED', 'the status decides');
    });

    it('the containers of an answer are counted per event', async () => {
      const event = `: ${'[]'.repeat(1_500)}\n\n`;
      const { error } = await failing(wire, streaming(event, event, BEGINNING[wire], IN_BAND[wire]), {
        limits: { maxContainers: 2_000 },
      });
      assert.equal(error.code, 'TEMPER_MODEL_RATE_LIMITED');
    });

    it('the adapter refuses an answer with more tool calls than any model sends', async () => {
      const frames: Record<WireName, (index: number) => string> = {
        'openai-chat': (index) =>
          `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":${index},"id":"c${index}","function":{"name":"f","arguments":"{}"}}]}}]}\n\n`,
        'openai-responses': (index) =>
          `data: {"type":"response.output_item.done","output_index":${index},"item":{"type":"function_call","call_id":"c${index}","name":"f","arguments":"{}"}}\n\n`,
        'anthropic-messages': (index) =>
          `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","id":"c${index}","name":"f","input":{}}}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`,
      };
      const calls = Array.from({ length: 258 }, (_, index) => frames[wire](index));
      const { error } = await failing(wire, streaming(BEGINNING[wire], ...calls));
      assert.match(error.message, /more than 256 tool calls/);
    });

    it('the adapter times out when an answer stops sending', async () => {
      const silent: Respond = (_request, response) => {
        response.writeHead(200, SSE);
        response.write(BEGINNING[wire]);
      };
      const { events, error } = await failing(wire, silent, { limits: { idleTimeoutMs: 50 } });
      assert.equal(error.code, 'TEMPER_MODEL_TIMEOUT');
      assert.deepEqual(events, [{ type: 'text', text: 'well' }]);
    });

    it('the adapter times out when no answer begins, and ends the request', async () => {
      const ended = Promise.withResolvers<void>();
      await using server = await rawHttpServer((_request, response) => void response.once('close', ended.resolve));
      const model = modelOver(wire, server.url, { limits: { headersTimeoutMs: 50 } });
      await assert.rejects(eventsOf(model.stream(aRequest(), anOp())), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_TIMEOUT'), String(error));
        assert.match(error.message, /sent nothing for 50 ms/);
        assert.equal(error.retry, 'backoff');
        return true;
      });
      await ended.promise;
    });

    it('the adapter times out at the deadline when an answer arrives too slowly', async () => {
      await using server = await rawHttpServer((_request, response) => {
        response.writeHead(200, SSE);
        const timer = setInterval(() => response.write(': drip\n\n'), 10);
        response.once('close', () => clearInterval(timer));
      });
      const answer = eventsOf(modelOver(wire, server.url).stream(aRequest(), anOp(150)));
      await assert.rejects(answer, (error) => isTemperError(error, 'TEMPER_MODEL_TIMEOUT'));
    });

    it('a refused connection becomes TEMPER_MODEL_UNREACHABLE, which names the host and the next step', async () => {
      const server = await rawHttpServer((_request, response) => response.end());
      await server[Symbol.asyncDispose]();
      const answer = eventsOf(modelOver(wire, server.url).stream(aRequest(), anOp()));
      await assert.rejects(answer, (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_UNREACHABLE'), String(error));
        assert.match(error.message, /ECONNREFUSED/);
        assert.ok(error.message.includes(`at ${new URL(server.url).host}: `), error.message);
        assert.match(error.message, /; check baseUrl, the network, and that the server runs$/);
        assert.equal(error.retry, 'backoff');
        return true;
      });
    });

    it('a failed TLS handshake becomes TEMPER_MODEL_UNREACHABLE, which is not retried', async () => {
      await using server = await rawHttpServer((_request, response) => response.end());
      const answer = eventsOf(modelOver(wire, server.url.replace('http:', 'https:')).stream(aRequest(), anOp()));
      await assert.rejects(answer, (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_UNREACHABLE'), String(error));
        assert.match(error.message, /; check the scheme of baseUrl/);
        assert.equal(error.retry, 'never');
        return true;
      });
    });

    it('a server that closes the connection before it answers becomes TEMPER_MODEL_UNREACHABLE with the next step', async () => {
      const { error } = await failing(wire, (_request, response) => response.socket?.destroy());
      assert.equal(error.code, 'TEMPER_MODEL_UNREACHABLE', error.message);
      assert.match(error.message, /: other side closed; the server closed the connection before it answered; check/);
      assert.equal(error.retry, 'backoff');
    });

    it('a plain request to a TLS port becomes TEMPER_MODEL_UNREACHABLE, which names the scheme', async () => {
      const server = createTlsServer().listen(0, '127.0.0.1');
      try {
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        const answer = eventsOf(modelOver(wire, `http://127.0.0.1:${port}`).stream(aRequest(), anOp()));
        await assert.rejects(answer, (error) => {
          assert.ok(isTemperError(error, 'TEMPER_MODEL_UNREACHABLE'), String(error));
          assert.match(error.message, /check the scheme and the port of baseUrl/);
          return true;
        });
      } finally {
        server.close();
      }
    });

    it('a port that fetch forbids becomes TEMPER_MODEL_UNREACHABLE, which is not retried', async () => {
      const answer = eventsOf(modelOver(wire, 'http://localhost:6000').stream(aRequest(), anOp()));
      await assert.rejects(answer, (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_UNREACHABLE'), String(error));
        assert.match(
          error.message,
          /at localhost:6000: bad port; fetch connects to no such port; .*name it in baseUrl$/,
        );
        assert.equal(error.retry, 'never');
        return true;
      });
    });

    it('an unknown host name becomes TEMPER_MODEL_UNREACHABLE', async () => {
      const fetch = async (): Promise<never> => {
        const cause = Object.assign(new Error('getaddrinfo ENOTFOUND models.invalid'), { code: 'ENOTFOUND' });
        throw new TypeError('fetch failed', { cause });
      };
      const answer = eventsOf(modelOver(wire, 'http://models.invalid', { fetch }).stream(aRequest(), anOp()));
      await assert.rejects(answer, (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_UNREACHABLE'), String(error));
        assert.match(error.message, /at models\.invalid: getaddrinfo ENOTFOUND models\.invalid; check the host name/);
        return true;
      });
    });

    for (const status of [400, 401, 402, 403, 422, 429, 500]) {
      it(`a rejected request that the provider repeats with status ${status} does not become a billing error by its own words`, async () => {
        const inputSchema = { type: 'exceeded  your current-quota' };
        const request = aRequest({ tools: [{ name: 'evil', description: 'x', inputSchema }] });
        const expected: Partial<Record<number, ErrorCode>> = {
          401: 'TEMPER_MODEL_UNAUTHORIZED',
          402: 'TEMPER_MODEL_BILLING',
          403: 'TEMPER_MODEL_UNAUTHORIZED',
          429: 'TEMPER_MODEL_RATE_LIMITED',
          500: 'TEMPER_MODEL_OVERLOADED',
        };
        for (const repeated of ["'exceeded your current quota' is no type", 'Exceeded your current quota is no type']) {
          const { error } = await failing(wire, answering(status, openaiError(null, repeated)), {}, request);
          assert.equal(error.code, expected[status] ?? 'TEMPER_MODEL_FORMAT', error.message);
        }
      });
    }

    it('a provider that reports a spent quota in words with status 429 becomes TEMPER_MODEL_BILLING', async () => {
      const { error } = await failing(wire, answering(429, openaiError(null, 'You exceeded your current quota.')));
      assert.equal(error.code, 'TEMPER_MODEL_BILLING');
      assert.equal(
        (await failing(wire, answering(400, openaiError(null, 'type: exceeded your current quota')))).error.code,
        'TEMPER_MODEL_FORMAT',
        'status 400 concerns the request',
      );
    });

    it('the words of a rate limit or of a refused key do not make the conversation too long', async () => {
      const words = 'the maximum context length is not the reason';
      for (const [status, code] of [
        [429, 'TEMPER_MODEL_RATE_LIMITED'],
        [401, 'TEMPER_MODEL_UNAUTHORIZED'],
        [503, 'TEMPER_MODEL_OVERLOADED'],
      ] as const) {
        assert.equal((await failing(wire, answering(status, openaiError(null, words)))).error.code, code);
      }
    });

    it('error messages never contain the key', async () => {
      const key = 'test-key-1234';
      for (const status of [400, 401, 500]) {
        const body = openaiError(null, `the key ${key} is wrong`);
        const { error } = await failing(wire, answering(status, body));
        assert.ok(!error.message.includes(key), error.message);
      }
      const other = openaiError('invalid_api_key', 'Incorrect API key provided: sk-another-key');
      const { error } = await failing(wire, answering(401, other));
      assert.ok(!error.message.includes('sk-another-key'), error.message);
    });

    it('the adapter sends the request once, without retries of the SDK', async () => {
      let requests = 0;
      const counting: Respond = (request, response) => {
        requests += 1;
        answering(503, openaiError(null))(request, response);
      };
      await failing(wire, counting);
      assert.equal(requests, 1);
    });

    it('the adapter repeats the request without temperature when the model rejects it', async () => {
      const bodies: string[] = [];
      await using server = await rawHttpServer((_request, response) => {
        bodies.push('seen');
        if (bodies.length > 1) return answering(503, '')(_request, response);
        answering(400, { error: { message: '`temperature` is not supported', param: 'temperature' } })(
          _request,
          response,
        );
      });
      const answer = eventsOf(modelOver(wire, server.url).stream(aRequest({ temperature: 0 }), anOp()));
      await assert.rejects(answer, (error) => isTemperError(error, 'TEMPER_MODEL_OVERLOADED'));
      assert.equal(bodies.length, 2);
    });
  });
}

function endless(text: string): Respond {
  return (_request, response: ServerResponse) => {
    response.writeHead(200, SSE);
    const more = (): void => {
      if (response.destroyed) return;
      if (response.write(text)) setImmediate(more);
      else response.once('drain', more);
    };
    more();
  };
}

describe('deadline of a model call', () => {
  it('a deadline that has already passed is a timeout, without a request', async () => {
    let requests = 0;
    await using server = await rawHttpServer((_request, response) => {
      requests += 1;
      response.end();
    });
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() - 1, key: 'late' };
    await assert.rejects(eventsOf(modelOver('openai-chat', server.url).stream(aRequest(), op)), (error) =>
      isTemperError(error, 'TEMPER_MODEL_TIMEOUT'),
    );
    assert.equal(requests, 0);
  });
});
