import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import type { JSONRPCMessage } from '@modelcontextprotocol/server';
import { poll } from '../../../test/support/poll.ts';
import { LineTransport } from './line-transport.ts';

interface Pipe {
  transport: LineTransport;
  received: JSONRPCMessage[];
  written: JSONRPCMessage[];
  send: (...lines: (object | string)[]) => void;
  end: () => Promise<void>;
}

async function aPipe(): Promise<Pipe> {
  const stream = new PassThrough();
  const written: JSONRPCMessage[] = [];
  const received: JSONRPCMessage[] = [];
  const transport = new LineTransport({
    lines: createInterface({ input: stream }),
    write: (message) => void written.push(message),
  });
  transport.onmessage = (message) => void received.push(message);
  await transport.start();
  return {
    transport,
    received,
    written,
    send(...lines) {
      for (const line of lines) stream.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
    },
    async end() {
      stream.end();
      await transport.ended;
    },
  };
}

const request = (id: number): object => ({ jsonrpc: '2.0', id, method: 'ping' });
const answer = (id: number): JSONRPCMessage => ({ jsonrpc: '2.0', id, result: {} });
const idsOf = (messages: readonly JSONRPCMessage[]): unknown[] =>
  messages.map((message) => 'id' in message && message.id);

describe('messages as lines', () => {
  it('a line that is no message is answered, and the next one is received', async () => {
    const { send, received, written, end } = await aPipe();
    const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(70)}${']'.repeat(70)}}}`;
    send('{', '{"jsonrpc":"1.0"}', deep, '', request(2));
    await end();
    assert.deepEqual(
      written.map((message) => 'error' in message && message.error.code),
      [-32_700, -32_600, -32_600],
    );
    assert.deepEqual(idsOf(received), [2]);
  });

  it('members that change the prototype of an object are dropped', async () => {
    const { send, received, end } = await aPipe();
    send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"__proto__":{"a":1},"name":"x"}}');
    await end();
    assert.deepEqual(received, [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } }]);
  });

  it('a second request with the id of one that has no answer is refused', async () => {
    const { transport, send, received, written, end } = await aPipe();
    send(request(1), request(1));
    await poll('the refusal', () => (written.length > 0 ? true : undefined));
    await transport.send(answer(1));
    send(request(1));
    await end();
    assert.deepEqual(idsOf(received), [1, 1]);
  });

  it('at most 64 requests wait for an answer, and an answer or a cancellation admits the next one', async () => {
    const { transport, send, received, end } = await aPipe();
    send(...Array.from({ length: 63 }, (_, index) => request(index)));
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 0 } });
    send(...Array.from({ length: 40 }, (_, index) => request(100 + index)));
    const requests = (): number => received.filter((message) => 'id' in message).length;
    await poll('the requests', () => (requests() >= 65 ? true : undefined));
    await transport.send(answer(1));
    await poll('the next request', () => (requests() >= 66 ? true : undefined));
    assert.equal(requests(), 66);
    await transport.close();
    await end();
    assert.equal(requests(), 66);
  });
});
