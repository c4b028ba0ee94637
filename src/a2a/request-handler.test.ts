import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Role, TaskState } from '@a2a-js/sdk';
import { ServerCallContext } from '@a2a-js/sdk/server';
import type { PeerTask } from '../bus/peer-task.ts';
import type { PeerCalls } from './peer-calls.ts';
import { PeerRequestHandler } from './request-handler.ts';
import { type TaskView, viewOfEnd } from './task.ts';

const TIME = '2026-01-01T00:00:00Z';
const TASK: PeerTask = { message: 'msg-1', caller: 'c', context: 'x', time: TIME, text: 'Hello.', digest: 'd' };

it('a caller that waits gets the end that the session shows, also while the task is still read as one in work', async () => {
  const working: TaskView = { task: TASK, state: TaskState.TASK_STATE_WORKING, since: TIME };
  const calls: Partial<PeerCalls<PeerTask>> = {
    send: async () => TASK,
    find: async () => TASK,
    start: () => 0,
    view: async () => working,
    async *changes() {
      yield working;
      yield viewOfEnd(TASK, { kind: 'reply', text: 'Done.', finishReason: 'complete' }, TIME);
    },
  };
  const handler = new PeerRequestHandler(calls as PeerCalls<PeerTask>, new AbortController().signal);
  const message = {
    messageId: 'm',
    role: Role.ROLE_USER,
    parts: [],
    contextId: '',
    taskId: '',
    extensions: [],
    referenceTaskIds: [],
    metadata: undefined,
  };
  const send = (returnImmediately: boolean) => {
    const configuration = { acceptedOutputModes: [], returnImmediately, taskPushNotificationConfig: undefined };
    const request = { tenant: '', message, configuration, metadata: undefined };
    return handler.sendMessage(request, new ServerCallContext());
  };
  assert.equal((await send(false)).status?.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal((await send(true)).status?.state, TaskState.TASK_STATE_WORKING);
});
