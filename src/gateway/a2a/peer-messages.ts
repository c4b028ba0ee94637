import type { Message } from '@a2a-js/sdk';
import { UnsupportedOperationError } from '@a2a-js/sdk/errors';
import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { messageId } from '../../nats/inbox/inbox.ts';
import { type PeerTask, peerSession } from '../../nats/tasks/peer-tasks.ts';
import { traceIdOf } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { requestWakeup } from '../pods/wakeup.ts';
import { assertNotClosed } from '../storage/closed-sessions.ts';
import { publishTraced } from '../tracing/message-traces.ts';
import type { MessageLogFields } from '../tracing/message-traces.ts';
import { invalidParameters } from './errors.ts';
import { messageText } from './message-text.ts';
import type { ServedAgent } from './served-agent.ts';
import { historyText } from './task.ts';

const CHAIN_TIMEOUT_MS = 3_600_000;
/** NATS stores a message with the same id once within 30 minutes. */
const REPEATABLE_MS = 25 * 60_000;
/** Tasks of one caller at one agent that have not ended: one caller cannot fill the inbox of an agent. */
const MAX_OPEN_TASKS = 32;
/** A task whose end was not recorded counts no longer than this. */
const COUNTED_MS = 2 * CHAIN_TIMEOUT_MS;

export interface PeerCall {
  readonly served: ServedAgent;
  /** W3C Trace Context of the caller, not validated. */
  readonly traceparent: unknown;
  readonly logFields: MessageLogFields;
}

/**
 * Sends the message of a caller and returns its task. A repeated message, by its id, is the same task: what a first attempt left undone is
 * done by the next one. Throws the errors of the protocol, TEMPER_RATE_LIMITED, TEMPER_SESSION_CLOSED and TEMPER_BUS_*.
 */
export async function sendPeerMessage(call: PeerCall, message: Message, deps: GatewayDeps): Promise<PeerTask> {
  const { state, caller } = call.served;
  const text = messageText(message);
  const sender = senderOf(call.served, message.messageId);
  const id = messageId(sender);
  assertNewTask(message, id);
  const digest = sha256(JSON.stringify([message.contextId, text]));
  const known = await deps.peerTasks.get(state.uid, caller, id);
  const task = known ?? (await openTask(call.served, { id, digest, text, context: message.contextId }, deps));
  if (task.digest !== digest)
    throw invalidParameters('message.messageId was used for another message; give each message an id of its own');
  const isRepeatable = deps.clock.now().getTime() - Date.parse(task.time) < REPEATABLE_MS;
  if (task.ended !== undefined || (task.sequence !== undefined && !isRepeatable)) return task;
  return publish(call, task, { text, key: sender.key, uid: sender.uid }, deps);
}

/** A task is one message with its answer: a conversation goes on with further messages of its context. */
function assertNewTask({ taskId }: Message, id: string): void {
  if (taskId === '' || taskId === id) return;
  throw new UnsupportedOperationError(
    'a task takes no further message: send it without message.taskId, in the same message.contextId',
  );
}

function senderOf({ state, caller }: ServedAgent, messageId: string): { uid: string; key: string } {
  return { uid: `peer-${caller}`, key: `${state.uid}/${messageId}` };
}

async function openTask(
  { state, caller }: ServedAgent,
  { id, digest, text, context: stated }: { id: string; digest: string; text: string; context: string },
  deps: GatewayDeps,
): Promise<PeerTask> {
  // Derived from the message, so that a repeated message has the context that its first attempt opened.
  const context = stated === '' ? `c-${id.slice('msg-'.length)}` : stated;
  const session = peerSession(caller, context);
  const [afterEvent, afterReply] = await Promise.all([
    deps.events.lastSequence(state.uid, session),
    deps.events.replyPosition(state.uid, session),
    assertNotClosed(state, session, deps),
    assertFewOpen(state.uid, caller, deps),
  ]);
  const time = deps.clock.now().toISOString();
  const task = { message: id, caller, context, time, text: historyText(text), digest, afterEvent, afterReply };
  return deps.peerTasks.open(state.uid, task);
}

async function assertFewOpen(agentUid: string, caller: string, { peerTasks, clock }: GatewayDeps): Promise<void> {
  const since = clock.now().getTime() - COUNTED_MS;
  const tasks = await peerTasks.of(agentUid, caller);
  const open = tasks.filter(({ ended, time }) => ended === undefined && Date.parse(time) > since);
  if (open.length < MAX_OPEN_TASKS) return;
  throw new TemperError(
    'TEMPER_RATE_LIMITED',
    `this caller has ${open.length} tasks of the agent that have not ended; wait for one, or cancel one`,
    { retry: 5_000 },
  );
}

async function publish(
  { served, traceparent: header, logFields }: PeerCall,
  task: PeerTask,
  { text, uid, key }: { text: string; uid: string; key: string },
  deps: GatewayDeps,
): Promise<PeerTask> {
  const { state, caller, callerName } = served;
  const session = peerSession(caller, task.context);
  const message = {
    to: state.agent.metadata.name,
    from: callerName,
    source: 'Peer' as const,
    session,
    text,
    depth: 0,
    deadline: new Date(Date.parse(task.time) + CHAIN_TIMEOUT_MS).toISOString(),
    time: task.time,
  };
  const { receipt, traceparent } = await publishTraced(header, { session, seed: key }, (own) =>
    deps.inbox.publish(state.uid, { uid, key }, { ...message, traceparent: own }),
  );
  const traceId = traceIdOf(traceparent) ?? '';
  Object.assign(logFields, { agent: message.to, messageId: receipt.id, session, traceId });
  const stored = await deps.peerTasks.stored(state.uid, task, receipt.sequence);
  await requestWakeup(state, deps);
  return stored;
}
