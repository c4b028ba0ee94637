import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import { messageRequest } from '../../../test/support/a2a.ts';
import { systemClock } from '../../lib/clock.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { MessageLog } from '../messages/message-log.ts';
import type { Member } from '../team/member.ts';
import { LocalPeerCalls } from './local-peer-calls.ts';

const MEMBER = { name: 'anna', namespace: 'team-a', agent: { metadata: { name: 'anna' }, spec: {} } } as Member;
const KEY = 'team-a/anna';
const CALLER = { caller: 'c'.repeat(32), callerName: 'team-a/planner' };

async function open() {
  const log = await MessageLog.open(memoryRecordStore(), Date.now());
  const inboxes = new LocalInboxes({ log, clock: systemClock });
  const calls = new LocalPeerCalls(MEMBER, CALLER, {
    inboxes,
    clock: systemClock,
    url: 'http://127.0.0.1:1',
    cancel: async () => undefined,
    isInWork: () => false,
    unexpected: assert.fail,
  });
  const send = (messageId: string) => {
    const { message } = messageRequest('Hello.', { messageId });
    assert.ok(message !== undefined);
    return calls.send(message);
  };
  return { inboxes, calls, send };
}

describe('the calls of a caller in one process', () => {
  it('a message that is repeated after its task was dropped is a task that has ended, and no open one', async () => {
    const { inboxes, calls, send } = await open();
    for (let number = 0; number < 40; number += 1) {
      const { message: id } = await send(`m-${number}`);
      await inboxes.change(() => ({ entries: [{ op: 'ended', agent: KEY, id, time: 0 }], result: undefined }));
      inboxes.inboxes.get(KEY)?.peers.delete(id);
      const again = await send(`m-${number}`);
      const { state, note } = await calls.view(again);
      assert.deepEqual([again.message, state], [id, TaskState.TASK_STATE_FAILED]);
      assert.match(note ?? '', /ended without an answer/);
    }
    assert.equal(inboxes.inboxes.get(KEY)?.messages.size, 0);
  });

  it('a caller has a limited number of open tasks, and a repeated message is none more', async () => {
    const { send } = await open();
    for (let number = 0; number < 32; number += 1) await send(`m-${number}`);
    await send('m-0');
    await assert.rejects(send('m-32'), /32 tasks of the agent that have not ended/);
  });
});
