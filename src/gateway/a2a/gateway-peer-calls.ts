import { agentCard } from '../../a2a/card.ts';
import type { PeerCalls } from '../../a2a/peer-calls.ts';
import { peerSession } from '../../bus/peer-task.ts';
import type { StoredPeerTask } from '../../nats/tasks/peer-tasks.ts';
import type { GatewayDeps } from '../deps.ts';
import { type PeerCall, sendPeerMessage } from './peer-messages.ts';
import { cancelTask, requireTask, taskChanges, viewOf } from './task-views.ts';

const TOKENS = 'A token of a Kubernetes ServiceAccount with the audience temper-a2a.';

/** The calls of one caller. Every replica answers for every task, from NATS. */
export function gatewayPeerCalls(call: PeerCall, deps: GatewayDeps): PeerCalls<StoredPeerTask> {
  const { state } = call.served;
  return {
    card: () => agentCard(state.agent, { url: deps.a2aUrl, tokens: TOKENS }),
    send: (message) => sendPeerMessage(call, message, deps),
    find: (id) => requireTask(call.served, id, deps),
    view: (task) => viewOf(state.uid, task, deps),
    start: ({ afterEvent }) => afterEvent,
    position: (task) => deps.events.lastSequence(state.uid, peerSession(task)),
    changes: (task, options) => taskChanges(state.uid, task, options, deps),
    cancel: (task) => cancelTask(state.uid, task, deps),
    unexpected: (error) => deps.log.error({ error, ...call.logFields }, 'a call over A2A failed'),
  };
}
