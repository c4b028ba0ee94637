import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { guardedStream } from './guarded-stream.ts';

const said = (text: unknown, kind = 'agent_message_chunk'): unknown => ({
  jsonrpc: '2.0',
  method: 'session/update',
  params: { sessionId: 's', update: { sessionUpdate: kind, content: { type: 'text', text } } },
});

async function passed(
  incoming: unknown[],
  sent: unknown[] = [],
): Promise<{ messages: unknown[]; violations: string[] }> {
  const violations: string[] = [];
  const source = Promise.withResolvers<void>();
  const readable = new ReadableStream<AnyMessage>({
    async start(controller) {
      await source.promise;
      for (const message of incoming) controller.enqueue(message as AnyMessage);
      controller.close();
    },
  });
  const writable = new WritableStream<AnyMessage>();
  const guarded = guardedStream({ readable, writable }, (reason) => violations.push(reason));
  const writer = guarded.writable.getWriter();
  for (const message of sent) await writer.write(message as AnyMessage);
  source.resolve();
  const messages: unknown[] = [];
  for await (const message of guarded.readable) messages.push(message);
  return { messages, violations };
}

describe('the stream of an agent program', () => {
  it('what the agent says and asks passes, and answers to requests pass once', async () => {
    const answer = { jsonrpc: '2.0', id: 0, result: {} };
    const request = { jsonrpc: '2.0', id: 'r', method: 'fs/read_text_file', params: {} };
    const { messages } = await passed(
      [said('hi'), request, answer, answer],
      [{ jsonrpc: '2.0', id: 0, method: 'initialize' }],
    );
    assert.deepEqual(messages, [said('hi'), request, answer]);
  });

  it('messages that the SDK would write to the terminal are dropped', async () => {
    const { messages, violations } = await passed([
      7,
      null,
      [],
      { id: '\u001b]52;c;Y3VybA==\u0007', result: {} },
      { method: 'x\u001b[2J' },
      { method: 7, id: 1 },
      { method: 'fs/read_text_file', id: { a: 1 } },
      said(7),
      said('plan', 'plan'),
      { method: 'session/update', params: {} },
    ]);
    assert.deepEqual([messages, violations], [[], []]);
  });

  it('a program with too many requests in work must end, and answered requests do not count', async () => {
    const requests = Array.from({ length: 65 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'fs/read_text_file' }));
    assert.equal((await passed(requests.slice(0, 64))).violations.length, 0);
    const { messages, violations } = await passed(requests);
    assert.deepEqual([messages.length, violations.length], [64, 1]);
  });
});
