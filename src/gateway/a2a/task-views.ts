import { TaskState } from '@a2a-js/sdk';
import { TaskNotCancelableError } from '@a2a-js/sdk/errors';
import type { TaskChangesOptions } from '../../a2a/peer-calls.ts';
import { isFinal, type TaskView, viewOfEnd, viewOfRecord, WAITS_FOR_APPROVAL } from '../../a2a/task.ts';
import { peerSession } from '../../bus/peer-task.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { SessionEnd } from '../../nats/session-replies.ts';
import type { StoredPeerTask } from '../../nats/tasks/peer-tasks.ts';
import type { GatewayDeps } from '../deps.ts';
import type { ServedAgent } from './served-agent.ts';

const MESSAGE_ID = /^msg-[0-9a-f]{32}$/;
/** As long as a message may wait in an inbox, with all its approvals. */
const MAX_AGE_MS = 8 * 24 * 3_600_000;

/** A task of this caller. Throws TEMPER_NOT_FOUND, also for tasks of others. */
export async function requireTask(
  { state, caller }: ServedAgent,
  id: string,
  deps: GatewayDeps,
): Promise<StoredPeerTask> {
  const task = MESSAGE_ID.test(id) ? await deps.peerTasks.get(state.uid, caller, id) : undefined;
  if (task !== undefined) return task;
  throw new TemperError('TEMPER_NOT_FOUND', `this caller has no task "${printable(id, 80)}" of the agent`);
}

/** The task at this moment. */
export async function viewOf(agentUid: string, task: StoredPeerTask, deps: GatewayDeps): Promise<TaskView> {
  const now = deps.clock.now();
  // First: a message that is not in work any more has its end stored already.
  const open = task.ended === undefined ? await openState(agentUid, task, deps) : undefined;
  // A message is in work for a moment after its end is stored.
  const end = await endOf(agentUid, task, deps);
  if (end !== undefined) return viewOfEnd(task, end, now.toISOString());
  if (open !== undefined && open.state !== TaskState.TASK_STATE_SUBMITTED) return open;
  if (task.ended !== undefined) return viewOfRecord(task, task.ended);
  if (now.getTime() - Date.parse(task.time) < MAX_AGE_MS)
    return { task, state: TaskState.TASK_STATE_SUBMITTED, since: task.time };
  return { task, state: TaskState.TASK_STATE_FAILED, since: now.toISOString(), note: 'the message is lost' };
}

async function openState(agentUid: string, task: StoredPeerTask, { inbox }: GatewayDeps): Promise<TaskView> {
  const [parked, inFlight] = await Promise.all([inbox.parked(agentUid), inbox.inFlight(agentUid)]);
  const since = task.time;
  if (parked.some(({ message }) => message === task.message))
    return { task, state: TaskState.TASK_STATE_INPUT_REQUIRED, since, note: WAITS_FOR_APPROVAL };
  const isInWork = inFlight.some(({ streamSequence }) => streamSequence === task.sequence);
  return { task, state: isInWork ? TaskState.TASK_STATE_WORKING : TaskState.TASK_STATE_SUBMITTED, since };
}

function endOf(agentUid: string, task: StoredPeerTask, { events }: GatewayDeps): Promise<SessionEnd | undefined> {
  const session = peerSession(task);
  return events.end(agentUid, { session, message: task.message, after: task.afterReply });
}

/**
 * The task as it changes, from `after` in the events of its session on, until it ends, waits for an approval with `untilInterrupted`, or
 * the signal aborts.
 */
export async function* taskChanges(
  agentUid: string,
  task: StoredPeerTask,
  { after, signal, untilInterrupted }: TaskChangesOptions,
  { events, clock }: GatewayDeps,
): AsyncGenerator<TaskView> {
  const session = peerSession(task);
  let state: TaskState | undefined;
  for await (const line of events.follow(agentUid, session, { after, signal, failOnStoreLoss: true })) {
    const now = clock.now().toISOString();
    if (line.kind !== 'event') {
      if (line.message !== task.message) continue;
      yield viewOfEnd(task, line, now);
      return;
    }
    if (line.event.rootMessage !== task.message) continue;
    const isParked = line.event.type === 'turn-parked';
    const next = isParked ? TaskState.TASK_STATE_INPUT_REQUIRED : TaskState.TASK_STATE_WORKING;
    if (next === state) continue;
    state = next;
    yield { task, state, since: line.event.time, ...(isParked ? { note: WAITS_FOR_APPROVAL } : {}) };
    if (isParked && untilInterrupted) return;
  }
}

/** Ends a task that has not ended. Throws TaskNotCancelableError for one that has. */
export async function cancelTask(agentUid: string, task: StoredPeerTask, deps: GatewayDeps): Promise<TaskView> {
  const { message, sequence } = task;
  const session = peerSession(task);
  const line = { kind: 'failed', message, code: 'TEMPER_CANCELLED', text: 'the caller canceled the task' } as const;
  const isCanceled =
    sequence !== undefined &&
    (await deps.inbox.withdraw(agentUid, { message, sequence }, async () => {
      await deps.events.append(agentUid, session, line);
    }));
  const view = isCanceled ? undefined : await viewOf(agentUid, task, deps);
  if (view !== undefined && isFinal(view.state))
    throw new TaskNotCancelableError('the task has ended, so it cannot be canceled');
  const at = deps.clock.now().toISOString();
  await deps.peerTasks.ended(agentUid, { session, message }, { outcome: 'Canceled', code: line.code, at });
  return viewOfEnd(task, line, at);
}
