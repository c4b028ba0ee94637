import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { TemperError } from '../lib/errors.ts';
import type { ReportedSpan } from './reported-span.ts';
import { continueTraceOver, continueTrace, inSpan, SPANS } from './spans.ts';
import { currentTraceparent, isSampled, spanContextOf, traceIdOf, unrecordedTraceparent } from './traceparent.ts';
import { startSpanReporting, startTracing } from './tracing.ts';

interface SentSpan {
  name: string;
  traceId: string;
  parentSpanId?: string;
  status: { code?: number; message?: string };
  attributes: { key: string; value: { stringValue?: string } }[];
}

/** A collector that stores the spans it receives, as OTLP over HTTP in JSON. */
async function collector() {
  const spans: SentSpan[] = [];
  const resources: unknown[] = [];
  const tokens: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    tokens.push(request.headers.authorization);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const sent = JSON.parse(Buffer.concat(chunks).toString()) as {
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
  it('without a configured collector, inSpan runs the work and there is no traceparent', async () => {
    await using _tracing = await startTracing({ service: 'temper', version: '0' });
    assert.equal(await inSpan('work', {}, async () => 7), 7);
    assert.equal(currentTraceparent(), undefined);
  });

  it('a trace continues from its traceparent and exports error codes, but no error messages', async () => {
    await using sink = await collector();
    {
      await using _tracing = await startTracing({
        service: 'temper-gateway',
        version: '1.2.3',
        endpoint: sink.endpoint,
        headers: async () => ({ authorization: 'Bearer of-this-moment' }),
      });
      const parent = await inSpan(SPANS.send, { kind: 'PRODUCER' }, async () => currentTraceparent());
      assert.match(parent ?? '', /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      await assert.rejects(
        continueTrace(parent, () =>
          inSpan(SPANS.chat('openai/x'), { kind: 'CLIENT', attributes: { 'gen_ai.request.model': 'x' } }, async () => {
            throw new TemperError('TEMPER_MODEL_OVERLOADED', 'words of the provider');
          }),
        ),
      );
    }
    const [send, chat] = [SPANS.send, 'chat openai/x'].map((name) => sink.spans.find((span) => span.name === name));
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

  it('reported spans are exported under the resource of their process, and an async iterable continues its trace', async () => {
    await using sink = await collector();
    const parent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const reported: ReportedSpan[] = [];
    {
      using _reporting = await startSpanReporting((span) => reported.push(span));
      async function* items(): AsyncGenerator<number> {
        await inSpan('first', {}, async () => undefined);
        yield 1;
        await inSpan('second', {}, async () => undefined);
        yield 2;
      }
      const read: number[] = [];
      for await (const item of continueTraceOver(parent, items())) read.push(item);
      assert.deepEqual(read, [1, 2]);
      // These must not be reported: a span of an unsampled trace, and a new root span.
      const unrecorded = unrecordedTraceparent('seed');
      await continueTrace(unrecorded, () => inSpan('unsampled', {}, async () => undefined));
      await inSpan('root', {}, async () => undefined);
    }
    assert.deepEqual(
      reported.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId]),
      ['first', 'second'].map((name) => [name, 'a'.repeat(32), 'b'.repeat(16)]),
    );
    {
      await using tracing = await startTracing({ service: 'temper-gateway', version: '1', endpoint: sink.endpoint });
      tracing.acceptSpans?.(reported, { 'service.name': 'temper-agent' });
    }
    assert.deepEqual(
      sink.spans.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId]),
      reported.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId]),
    );
    assert.ok(JSON.stringify(sink.resources).includes('temper-agent'));
  });

  it('an unavailable collector is reported once and does not prevent shutdown', async () => {
    const failures: unknown[] = [];
    {
      const endpoint = 'http://127.0.0.1:9/v1/traces';
      await using _tracing = await startTracing({
        service: 't',
        version: '0',
        endpoint,
        onExportError: (error) => failures.push(error),
      });
      await inSpan('lost', {}, async () => undefined);
    }
    assert.equal(failures.length, 1);
  });
});

describe('the traceparent', () => {
  it('spanContextOf accepts only the W3C format', () => {
    const good = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    assert.equal(traceIdOf(good), '1'.repeat(32));
    assert.ok(isSampled(good));
    assert.ok(!isSampled(good.replace(/01$/, '00')));
    for (const wrong of [
      undefined,
      '',
      [good],
      good.replace('00-', '01-'),
      good.toUpperCase().replaceAll('1', 'A'),
      `${good}-more`,
      `${good}\n`,
      good.replaceAll('1', '0'),
      good.replaceAll('2', '0'),
    ]) {
      assert.equal(spanContextOf(wrong), undefined, String(wrong));
    }
  });

  it('an unrecorded traceparent is the same for the same seed, and not sampled', () => {
    const one = unrecordedTraceparent('msg-1');
    assert.equal(one, unrecordedTraceparent('msg-1'));
    assert.notEqual(traceIdOf(one), traceIdOf(unrecordedTraceparent('msg-2')));
    assert.ok(!isSampled(one));
  });
});
