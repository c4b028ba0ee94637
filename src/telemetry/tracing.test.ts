import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { TemperError } from '../lib/errors.ts';
import { continuingTrace, inSpan, SPANS, traceHeaders } from './spans.ts';
import { startTracing } from './tracing.ts';

interface SentSpan {
  name: string;
  traceId: string;
  parentSpanId?: string;
  status: { code?: number; message?: string };
  attributes: { key: string; value: { stringValue?: string } }[];
}

/** A collector that keeps what it is sent, as OTLP over HTTP in JSON. */
async function collector() {
  const spans: SentSpan[] = [];
  const resources: unknown[] = [];
  const tokens: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    tokens.push(request.headers.authorization);
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const sent = JSON.parse(Buffer.concat(pieces).toString()) as {
        resourceSpans: { resource: unknown; scopeSpans: { spans: SentSpan[] }[] }[];
      };
      for (const { resource, scopeSpans } of sent.resourceSpans) {
        resources.push(resource);
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.setHeader('content-type', 'application/json').end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    spans,
    resources,
    tokens,
    endpoint: `http://127.0.0.1:${port}/v1/traces`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('tracing', () => {
  it('does the work and names no trace when no collector is configured', async () => {
    await using _tracing = await startTracing({ service: 'temper', version: '0' });
    assert.equal(await inSpan('work', {}, async () => 7), 7);
    assert.deepEqual(traceHeaders(), {});
  });

  it('sends one trace over two parts, with codes of errors and without their texts', async () => {
    await using sink = await collector();
    {
      await using _tracing = await startTracing({
        service: 'temper-gateway',
        version: '1.2.3',
        endpoint: sink.endpoint,
        headers: async () => ({ authorization: 'Bearer of-this-moment' }),
      });
      const headers = await inSpan(SPANS.send, { kind: 'PRODUCER' }, async () => traceHeaders());
      assert.match(headers['traceparent'] ?? '', /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      await assert.rejects(
        continuingTrace(headers, () =>
          inSpan(SPANS.chat('openai/x'), { kind: 'CLIENT', attributes: { 'gen_ai.request.model': 'x' } }, async () => {
            throw new TemperError('TEMPER_MODEL_OVERLOADED', 'words of the provider');
          }),
        ),
      );
    }
    const [send, chat] = ['send message', 'chat openai/x'].map((name) => sink.spans.find((span) => span.name === name));
    assert.ok(send !== undefined && chat !== undefined);
    assert.equal(chat.traceId, send.traceId);
    assert.notEqual(chat.parentSpanId, undefined);
    assert.equal(chat.status.code, 2);
    const code = chat.attributes.find(({ key }) => key === 'error.type');
    assert.equal(code?.value.stringValue, 'TEMPER_MODEL_OVERLOADED');
    assert.ok(!JSON.stringify(sink.spans).includes('words of the provider'));
    assert.ok(JSON.stringify(sink.resources).includes('temper-gateway'));
    assert.deepEqual([...new Set(sink.tokens)], ['Bearer of-this-moment']);
  });
});
