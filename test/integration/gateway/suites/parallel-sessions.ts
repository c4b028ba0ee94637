import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { readBody } from '../../../../src/lib/async/read-body.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../../src/gateway-api/user-api.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import type { GatewayFixture } from '../../../support/gateway/gateway-fixture.ts';

/** As many sessions as the agent may work on. */
export const MEETING_SESSIONS = 10;

interface ChatRequest {
  messages: { role: string; content?: string }[];
}

/** A model that answers a first turn only when it has one of every session at the same time, and then what the session asked. */
export async function startMeetingModel(): Promise<{ url: string } & AsyncDisposable> {
  const arrived = new Set<string>();
  const all = Promise.withResolvers<void>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { messages } = JSON.parse(await readBody(request, 1_000_000, () => new Error('too large'))) as ChatRequest;
    const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
    const isFirst = messages.at(-1)?.role === 'user';
    arrived.add(asked);
    if (arrived.size >= MEETING_SESSIONS) all.resolve();
    if (isFirst) await all.promise;
    const call = {
      index: 0,
      id: 'c1',
      type: 'function',
      function: { name: 'file_list', arguments: '{"path":"data"}' },
    };
    const delta = isFirst ? { tool_calls: [call] } : { content: `echo ${asked}` };
    const choice = { index: 0, delta, finish_reason: isFirst ? 'tool_calls' : 'stop' };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ model: 'm', choices: [choice] })}\n\ndata: [DONE]\n\n`);
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      all.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface ParallelSetup {
  fixture: GatewayFixture;
  agentUid: string;
  /** Lets the agent use the meeting model, and work on as many sessions. */
  prepare: () => Promise<void>;
  start: () => { end: (signal: NodeJS.Signals) => Promise<number | null>; log: string };
  send: (text: string, session: string) => Promise<UserMessageReceipt>;
  follow: (receipt: UserMessageReceipt) => Promise<SessionStreamLine[]>;
}

export function parallelSessionTests(setup: () => ParallelSetup): void {
  it('ten sessions of one agent work at the same time, and nothing of one appears in another', async () => {
    const { fixture, agentUid, prepare, start, send, follow } = setup();
    await prepare();
    const names = Array.from({ length: MEETING_SESSIONS }, (_, index) => `task-${index}`);
    const receipts = await Promise.all(names.map((name) => send(name, `parallel-${name}`)));
    const agent = start();
    const bus = await fixture.nats.connect('gateway');
    for (const [index, receipt] of receipts.entries()) {
      const lines = await follow(receipt);
      const name = names[index];
      const last = lines.at(-1);
      assert.ok(last?.kind === 'reply' && last.text === `echo ${name}`, JSON.stringify(last));
      const events = lines.flatMap((line) => (line.kind === 'event' ? [line.event] : []));
      assert.ok(events.every(({ session, rootMessage }) => session === receipt.session && rootMessage === receipt.id));
      const received = events.flatMap((event) => (event.type === 'message-received' ? [event.text] : []));
      assert.deepEqual(received, [name]);
      assert.equal(events.filter(({ type }) => type === 'tool-result').length, 1);
      const { items } = await createSessionStore(bus, agentUid).load(receipt.session);
      assert.deepEqual(
        items.map(({ role }) => role),
        ['user', 'assistant', 'tool', 'assistant'],
      );
      assert.ok(items[0]?.role === 'user' && items[0].text === name && items[0].message === receipt.id);
    }
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });
}
