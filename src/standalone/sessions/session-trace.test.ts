import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../agent/session/session-store.ts';
import { systemClock } from '../../lib/clock.ts';
import { type Json, member, textAt } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { SessionTrace, traceLog } from './session-trace.ts';

const OWNERS = [
  { name: 'analyst', namespace: 'team-a' },
  { name: 'writer', namespace: 'team-a' },
  { name: 'analyst', namespace: 'team-b' },
];

/** Handles one message of session s-1 as the agent would: its history, and its trace. */
async function handleMessage(records: RecordStore, agent: (typeof OWNERS)[number], text: string): Promise<void> {
  const trace = new SessionTrace({ records, clock: systemClock, agent, next: () => {} });
  trace.sink({ type: 'session-start', session: 's-1', model: 'm', policy: 'p', level: 'restricted' });
  trace.sink({ type: 'message-received', text });
  trace.sink({ type: 'session-end', turns: 1, toolCalls: 0, inputTokens: 1, outputTokens: 1, reply: text });
  await trace.flush();
  await sessionsOf(records, agent).append('s-1', 0, [{ role: 'user', text }]);
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
});
