import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../agent/session/session-store.ts';
import { systemClock } from '../../lib/clock.ts';
import { type Json, member, textAt } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { SessionTrace, traceLog } from './session-trace.ts';

const OWNERS = [
  { name: 'analyst', namespace: 'team-a' },
  { name: 'writer', namespace: 'team-a' },
  { name: 'analyst', namespace: 'team-b' },
];

/** Handles one message of session s-1 as the agent would: its history, and its trace. */
async function handleMessage(records: RecordStore, agent: (typeof OWNERS)[number], text: string): Promise<void> {
  const trace = new SessionTrace({ records, clock: systemClock, agent, next: () => {} });
  trace.sink({ type: 'session-start', session: 's-1', model: 'm', policy: 'p', level: 'restricted' }, 's-1');
  trace.sink({ type: 'message-received', text }, 's-1');
  trace.sink(endedWith(text), 's-1');
  await trace.flush();
  await sessionsOf(records, agent).append('s-1', 0, [{ role: 'user', text }]);
}

function endedWith(reply: string): AgentEvent {
  return { type: 'session-end', turns: 1, toolCalls: 0, inputTokens: 1, outputTokens: 1, reply };
}

function sessionsOf(records: RecordStore, { name, namespace }: (typeof OWNERS)[number]) {
  return createRecordSessionStore(records, systemClock, { agent: name, namespace });
}

function traceOf(records: RecordStore, { name, namespace }: (typeof OWNERS)[number]): Promise<Json[]> {
  return records.read(traceLog({ agent: name, namespace, session: 's-1' }));
}

describe('the traces of agents that use one session id', () => {
  it('each agent has its own trace, with its own messages', async () => {
    const records = memoryRecordStore();
    for (const owner of OWNERS) await handleMessage(records, owner, `of ${owner.namespace}/${owner.name}`);
    for (const owner of OWNERS) {
      const [line, ...others] = await traceOf(records, owner);
      assert.deepEqual([textAt(line, ['namespace']), textAt(line, ['agent'])], [owner.namespace, owner.name]);
      assert.match(JSON.stringify(member(line, 'events')), new RegExp(`"of ${owner.namespace}/${owner.name}"`));
      assert.deepEqual(others, []);
    }
  });

  it('closing the session of one agent removes its trace only', async () => {
    const records = memoryRecordStore();
    for (const owner of OWNERS) await handleMessage(records, owner, 'hello');
    const [closed, ...others] = OWNERS;
    assert.ok(closed !== undefined);
    await sessionsOf(records, closed).close('s-1');
    assert.deepEqual(await traceOf(records, closed), []);
    for (const owner of others) {
      assert.equal((await traceOf(records, owner)).length, 1);
      assert.equal((await sessionsOf(records, owner).load('s-1')).seq, 1);
    }
  });

  it('two sessions of one agent at a time: each line has the events of its session, and those of the background are in the next line', async () => {
    const records = memoryRecordStore();
    const [agent] = OWNERS;
    assert.ok(agent !== undefined);
    const trace = new SessionTrace({ records, clock: systemClock, agent, next: () => {} });
    for (const session of ['s-1', 's-2']) trace.sink({ type: 'message-received', text: `of ${session}` }, session);
    trace.sink({ type: 'demotion', tool: 'double', digest: 'sha256:0', reason: 'failed' });
    for (const session of ['s-2', 's-1']) trace.sink(endedWith(session), session);
    await trace.flush();
    const typesOf = async (session: string): Promise<string[]> => {
      const lines = await records.read(traceLog({ agent: agent.name, namespace: agent.namespace, session }));
      const events = lines.flatMap((line) => member(line, 'events') ?? []).flat();
      return events.map((event) => `${textAt(event, ['type'])} ${textAt(event, ['text'])}`.trim());
    };
    assert.deepEqual(await typesOf('s-2'), ['message-received of s-2', 'demotion', 'session-end']);
    assert.deepEqual(await typesOf('s-1'), ['message-received of s-1', 'session-end']);
  });
});
