import type { Message } from '@a2a-js/sdk';
import { assertFewOpen, assertSameMessage, PEER_CHAIN_MS, type PeerDraft, peerDraft } from '../../a2a/peer-message.ts';
import { peerSession } from '../../bus/peer-task.ts';
import { messageId } from '../../nats/inbox/inbox.ts';
import type { StoredPeerTask } from '../../nats/tasks/peer-tasks.ts';
import { traceIdOf } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { requestWakeup } from '../pods/wakeup.ts';
import { assertNotClosed } from '../storage/closed-sessions.ts';
import { type MessageLogFields, publishTraced } from '../tracing/message-traces.ts';
import type { ServedAgent } from './served-agent.ts';

/** NATS stores a message with the same id once within 30 minutes. */
const REPEATABLE_MS = 25 * 60_000;

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
export async function sendPeerMessage(call: PeerCall, message: Message, deps: GatewayDeps): Promise<StoredPeerTask> {
  const { state, caller } = call.served;
  const sender = { uid: `peer-${caller}`, key: `${state.uid}/${message.messageId}` };
  const draft = peerDraft(message, messageId(sender));
  const task =
    (await deps.peerTasks.get(state.uid, caller, draft.message)) ?? (await openTask(call.served, draft, deps));
  assertSameMessage(task, draft);
  const isRepeatable = deps.clock.now().getTime() - Date.parse(task.time) < REPEATABLE_MS;
  if (task.ended !== undefined || (task.sequence !== undefined && !isRepeatable)) return task;
  return publish(call, task, { text: draft.whole, ...sender }, deps);
}

async function openTask(
  { state, caller }: ServedAgent,
  { message, context, digest, text }: PeerDraft,
  deps: GatewayDeps,
): Promise<StoredPeerTask> {
  const session = peerSession({ caller, context });
  const now = deps.clock.now();
  const [afterEvent, afterReply, tasks] = await Promise.all([
    deps.events.lastSequence(state.uid, session),
    deps.events.replyPosition(state.uid, session),
    deps.peerTasks.of(state.uid, caller),
    assertNotClosed(state, session, deps),
  ]);
  assertFewOpen(tasks, now.getTime());
  const task = { message, caller, context, time: now.toISOString(), text, digest, afterEvent, afterReply };
  return deps.peerTasks.open(state.uid, task);
}

async function publish(
  { served, traceparent: header, logFields }: PeerCall,
  task: StoredPeerTask,
  { text, uid, key }: { text: string; uid: string; key: string },
  deps: GatewayDeps,
): Promise<StoredPeerTask> {
  const { state, callerName } = served;
  const session = peerSession(task);
  const message = {
    to: state.agent.metadata.name,
    from: callerName,
    source: 'Peer' as const,
    session,
    text,
    depth: 0,
    deadline: new Date(Date.parse(task.time) + PEER_CHAIN_MS).toISOString(),
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
