import type { FastifyRequest } from 'fastify';
import type { PodIdentity } from '../../identity/types.ts';
import { TemperError } from '../../lib/errors.ts';
import type { InboxDelivery } from '../../nats/inbox/inbox.ts';
import { NextMessageRequest, PodDelivery } from '../../gateway-api/delivery-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import type { AgentState, GatewayDeps } from '../deps.ts';
import { longPollSignal } from '../http/long-poll.ts';
import { messageLogFields, traceReceive } from '../tracing/message-traces.ts';
import type { DeliveryTokenClaims } from './token.ts';
import type { GatewayServer } from '../http/routes.ts';
import { NoContent, POD_SECURITY, ERROR_RESPONSES } from '../http/schemas.ts';

/**
 * Delivers messages to pods, one at a time, each with a delivery token.
 *
 *   POST next ── restarted? ── release the message in flight
 *      │
 *      ▼
 *   suspended ──wait for a change──┐      any state: pod not bound → 403, draining or client disconnected → 204
 *      │  ▲                        │
 *      ▼  └────────────────────────┘
 *   fetch from NATS ── `pollEnd`: wait over, disconnected, draining ──────────► 204
 *      │            └─ `invalidated`: suspended or no longer bound ─► back to the first check
 *      ▼
 *   message ── disconnected or not bound → retry; deadline passed → dead-letter; else sign the token → 200
 */
export function nextMessageRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.nextMessage,
    {
      config: { access: 'pod', longPoll: true },
      schema: {
        ...POD_SECURITY,
        summary: 'The next message of the agent',
        body: NextMessageRequest,
        response: { 200: PodDelivery, 204: NoContent, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const pollEnd = longPollSignal(request.body.waitSeconds * 1_000, request, deps);
      const until = deps.clock.monotonic() + request.body.waitSeconds * 1_000;
      if (request.body.restarted === true) await releaseInFlight(request.pod, deps);
      const delivery = await nextDelivery(request, until, pollEnd, deps);
      return delivery === undefined ? reply.code(204).send(null) : delivery;
    },
  );
}

/** An agent works on one message at a time, so a new process has none: the pending delivery would only block it. */
async function releaseInFlight(pod: PodIdentity, deps: GatewayDeps): Promise<void> {
  boundState(pod, deps);
  const released = await deps.inbox.redeliver(pod.agentUid);
  if (released)
    deps.log.info({ agent: pod.agent, pod: pod.podUid }, 'the in-flight message of a restarted pod is redelivered');
}

/** For a suspended agent the request waits as if no message arrived. */
async function nextDelivery(
  request: FastifyRequest,
  until: number,
  pollEnd: AbortSignal,
  deps: GatewayDeps,
): Promise<PodDelivery | undefined> {
  const { pod } = request;
  for (;;) {
    const state = boundState(pod, deps);
    if (deps.draining.aborted || request.disconnected.aborted) return undefined;
    if (state.suspended) {
      if (pollEnd.aborted) return undefined;
      await deps.directory.changed({ podUid: pod.podUid, state }, pollEnd);
      continue;
    }
    const delivery = await fetchWhileBound(pod, state, Math.max(0, until - deps.clock.monotonic()), pollEnd, deps);
    const signed = delivery === undefined ? undefined : await signedDelivery(request, delivery, deps);
    if (signed !== undefined) return signed;
    if (pollEnd.aborted) return undefined;
  }
}

/** Throws TEMPER_POD_NOT_BOUND when the pod is no longer bound to the agent. */
function boundState(pod: PodIdentity, { identity, directory }: GatewayDeps): AgentState {
  const state = directory.byUid(pod.agentUid);
  if (state === undefined || !identity.isStillBound(pod.podUid, pod.agentUid)) {
    throw new TemperError('TEMPER_POD_NOT_BOUND', 'the pod is no longer bound to its agent');
  }
  return state;
}

/**
 * Waits for a message from NATS. Cancels the fetch when the agent is suspended or the pod is no longer bound.
 * `pollEnd` ends the fetch from outside, `invalidated` ends it from the watch, `fetched` ends the watch.
 */
async function fetchWhileBound(
  pod: PodIdentity,
  state: AgentState,
  waitMilliseconds: number,
  pollEnd: AbortSignal,
  deps: GatewayDeps,
): Promise<InboxDelivery | undefined> {
  const fetched = new AbortController();
  const invalidated = new AbortController();
  const fetchEnd = AbortSignal.any([pollEnd, invalidated.signal]);
  const watch = async (): Promise<void> => {
    while (!fetched.signal.aborted) {
      const current = deps.directory.byUid(pod.agentUid);
      if (current === undefined || current.suspended || !deps.identity.isStillBound(pod.podUid, pod.agentUid))
        invalidated.abort();
      if (invalidated.signal.aborted) return;
      await deps.directory.changed({ podUid: pod.podUid, state }, fetched.signal);
    }
  };
  const watched = watch();
  try {
    return await deps.inbox.fetchNext(pod.agentUid, waitMilliseconds, fetchEnd);
  } finally {
    fetched.abort();
    await watched;
  }
}

/** The delivery with its token. Undefined when it cannot be delivered to this pod; it was returned or dead-lettered then. */
async function signedDelivery(
  request: FastifyRequest,
  { message, coordinates, ackWaitMs: ackTimeoutMs }: InboxDelivery,
  deps: GatewayDeps,
): Promise<PodDelivery | undefined> {
  const { pod } = request;
  // The client disconnected or the pod is no longer bound: the next request of the agent's pod receives the message.
  const bound = deps.identity.isStillBound(pod.podUid, pod.agentUid);
  if (request.disconnected.aborted || !bound) {
    await deps.inbox.retry(coordinates, 0);
    return undefined;
  }
  if (Date.parse(message.deadline) <= deps.clock.now().getTime()) {
    const reason = 'the deadline of its chain passed before it was delivered';
    await deps.inbox.reject(coordinates, 'TEMPER_TIMEOUT', reason);
    return undefined;
  }
  const traceparent = await traceReceive(message);
  const claims: DeliveryTokenClaims = {
    agentUid: pod.agentUid,
    agent: pod.agent,
    namespace: pod.namespace,
    podUid: pod.podUid,
    message: message.id,
    session: message.session,
    root: message.root,
    depth: message.depth,
    deadline: message.deadline,
    time: message.time,
    traceparent,
    at: {
      streamSequence: coordinates.streamSequence,
      consumerSequence: coordinates.consumerSequence,
      deliveries: coordinates.deliveries,
    },
  };
  Object.assign(request.logFields, messageLogFields(claims));
  return { message: { ...message, traceparent }, deliveryToken: deps.deliveryTokens.sign(claims), ackTimeoutMs };
}
