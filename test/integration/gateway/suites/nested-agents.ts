import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { SessionStreamLine, UsageBreakdown, UserMessageReceipt } from '../../../../src/gateway-api/user-api.ts';
import type { ReplayScript } from '../../../../src/models/replay/script/script.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import type { GatewayFixture } from '../../../support/gateway/gateway-fixture.ts';
import { pollValue } from '../../../support/poll.ts';

const run = (id: string, message: string) => ({
  id,
  name: 'agent_run',
  arguments: { prompt: 'List the files.', message, allowedTools: ['file_list'] } as never,
});

/** The agent gives two tasks to nested agents at once; each of those lists a folder. */
export const NESTED_SCRIPT: ReplayScript = {
  rules: [
    {
      when: { system: 'List the files', turn: 1 },
      answer: { toolCalls: [{ id: 'l1', name: 'file_list', arguments: { path: 'data' } as never }] },
    },
    { when: { system: 'List the files' }, answer: { text: 'six files' } },
    {
      when: { lastUser: 'split', turn: 1 },
      answer: { toolCalls: [run('r1', 'the first'), run('r2', 'the second')] },
    },
    { answer: { text: 'Both found six files.' } },
  ],
};

interface NestedSetup {
  fixture: GatewayFixture;
  agentUid: string;
  /** Lets the agent use the model of the script, and start nested agents. */
  prepare: () => Promise<void>;
  start: () => { end: (signal: NodeJS.Signals) => Promise<number | null>; log: string };
  send: (text: string) => Promise<UserMessageReceipt>;
  follow: (receipt: UserMessageReceipt) => Promise<SessionStreamLine[]>;
  /** What was charged, by root message. */
  charges: () => Promise<UsageBreakdown>;
}

export function nestedAgentTests(setup: () => NestedSetup): void {
  it('nested agents of a pod are charged to the agent and the root message, call by call, and their events and history are those of the session', async () => {
    const { fixture, agentUid, prepare, start, send, follow, charges } = setup();
    await prepare();
    const agent = start();
    const receipt = await send('split the work');
    const lines = await follow(receipt);
    const last = lines.at(-1);
    assert.ok(last?.kind === 'reply' && last.text === 'Both found six files.', JSON.stringify(last));
    const events = lines.flatMap((line) => (line.kind === 'event' ? [line.event] : []));
    assert.ok(events.every(({ rootMessage }) => rootMessage === receipt.id));
    const nested = events.filter(({ type }) => type === 'agent-complete');
    assert.equal(new Set(nested.map(({ contextId }) => contextId)).size, 2);
    assert.ok(nested.every((event) => event.ancestorIds?.join() === receipt.id));
    const listed = events.filter((event) => event.type === 'tool-result' && event.tool === 'file_list');
    assert.equal(listed.filter((event) => event.contextId !== undefined).length, 2);
    const end = events.find(({ type }) => type === 'session-end');
    assert.ok(end?.type === 'session-end');
    const used = end.inputTokens + end.outputTokens;
    const ofNested = nested.reduce(
      (sum, event) => sum + (event.type === 'agent-complete' ? event.inputTokens + event.outputTokens : 0),
      0,
    );
    assert.ok(ofNested > 0 && ofNested < used);
    const charged = await pollValue(
      'two calls of the message and four of its nested agents are charged to its root message',
      async () => (await charges()).rows.find(({ name }) => name === receipt.id),
      (row) => row?.calls === 6,
    );
    // A count of the provider that is too low to be true is charged as the least that is plausible.
    assert.ok((charged?.inputTokens ?? 0) + (charged?.outputTokens ?? 0) >= used, JSON.stringify({ charged, used }));
    const { items } = await createSessionStore(await fixture.nats.connect('gateway'), agentUid).load(receipt.session);
    const seen = items.filter((item) => item.role !== 'tool' || item.journal !== true).map(({ role }) => role);
    assert.deepEqual(seen, ['user', 'assistant', 'tool', 'tool', 'assistant']);
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });
}
