import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import { FakeClock } from '../../../test/support/clocks.ts';
import type { StoredPeerTask } from '../../nats/tasks/peer-tasks.ts';
import type { GatewayDeps } from '../deps.ts';
import { viewOf } from './task-views.ts';

const CLOCK = new FakeClock();
const TASK = {
  message: 'msg-1',
  context: 'c-1',
  caller: 'planner',
  sequence: 7,
  time: CLOCK.now().toISOString(),
  afterReply: 0,
} as unknown as StoredPeerTask;

/** The inbox and the events of an agent whose message is in work, or not, and has its reply stored, or not. */
function depsOf({ inWork, reply }: { inWork: boolean; reply?: string }): GatewayDeps {
  return {
    clock: CLOCK,
    inbox: { parked: async () => [], inFlight: async () => (inWork ? [{ streamSequence: 7 }] : []) },
    events: {
      end: async () => (reply === undefined ? undefined : { kind: 'reply', message: 'msg-1', text: reply }),
    },
  } as unknown as GatewayDeps;
}

const stateOf = async (state: Parameters<typeof depsOf>[0]): Promise<TaskState> =>
  (await viewOf('u-agent', TASK, depsOf(state))).state;

describe('the view of a task', () => {
  it('a task whose reply is stored is completed, also while its message counts as in work for a moment', async () => {
    assert.equal(await stateOf({ inWork: true, reply: 'There are 6.' }), TaskState.TASK_STATE_COMPLETED);
    assert.equal(await stateOf({ inWork: false, reply: 'There are 6.' }), TaskState.TASK_STATE_COMPLETED);
  });

  it('a task without a reply is in work, or waits', async () => {
    assert.equal(await stateOf({ inWork: true }), TaskState.TASK_STATE_WORKING);
    assert.equal(await stateOf({ inWork: false }), TaskState.TASK_STATE_SUBMITTED);
  });
});
