import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { answerText } from '../../agent/messages/ask.ts';
import type { Envelope } from '../../bus/port.ts';
import type { PodIdentity } from '../../identity/types.ts';
import { concurrencyOf } from '../../api/limits/concurrency.ts';
import { onAbort } from '../../lib/async/abort.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { InboxReceiver, type ReceivedDelivery } from '../../nats/inbox/message-ports.ts';
import { NextMessageRequest, NoMessage, PodDelivery } from '../../gateway-api/delivery-schemas.ts';
import {
  ACCEPTED_MESSAGES_HEADER,
  ASSIGNMENT_VERSION_HEADER,
  CALL_MESSAGES,
  POD_API_PATHS,
} from '../../gateway-api/pod-api.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { isPrivateContent } from '../../policy/private-data/sources.ts';
import { isUntrustedSource } from '../../policy/untrusted-source.ts';
import { longPollSignal } from '../http/long-poll.ts';
import { changedAssignment } from '../pods/assignment.ts';
import { messageLogFields, traceReceive } from '../tracing/message-traces.ts';
import type { DeliveryTokenClaims } from './token.ts';
import type { GatewayServer } from '../http/routes.ts';
import { NoContent, POD_SECURITY, ERROR_RESPONSES } from '../http/schemas.ts';

/**
 * Delivers messages to pods, at most as many at a time as the agent works on, each with a delivery token.
 *
 *   POST next ── restarted? ── release the messages in flight
 *      │
 *      ▼
 *   another assignment than the one that the request names ──► 200 with the assignment
 *      │
 *      ▼
 *   suspended ──wait for a change──► back     any state: pod not bound → 403, draining or client disconnected → no message
 *      │
 *      ▼
 *   fetch from NATS ── `pollEnd`: wait over, disconnected, draining ──► no message
 *      │            └─ suspended, no longer bound, another assignment ──► back
 *      ▼
 *   message ── disconnected or not bound → retry; deadline passed, or a call for a pod that makes none → dead-letter; else sign the token → 200
 *
 * No message: 200 with an empty object for a request that names an assignment, so that the pod knows that it was watched; else 204.
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
        response: { 200: Type.Union([PodDelivery, NoMessage]), 204: NoContent, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const pollEnd = longPollSignal(request.body.waitSeconds * 1_000, request, deps);
      const until = deps.clock.monotonic() + request.body.waitSeconds * 1_000;
      if (request.body.restarted === true) await releaseInFlight(request.pod, deps);
      const known = knownAssignment(request);
      const next = await nextAnswer(request, { until, pollEnd, known }, deps);
      if (next !== undefined) return next;
      return known === undefined ? reply.code(204).send(null) : {};
    },
  );
}

/** An agent has one pod, and a new process of it works on no message: the pending deliveries would only block their sessions. */
async function releaseInFlight(pod: PodIdentity, deps: GatewayDeps): Promise<void> {
  boundState(pod, deps);
  const released = await deps.inbox.redeliver(pod.agentUid);
  if (released > 0)
    deps.log.info({ agent: pod.agent, pod: pod.podUid, released }, 'messages of a restarted pod are redelivered');
}

/** A reason of its own: without one, each `abort` creates an error with a stack. */
const ENDED = 'the wait has ended';

/** How long a request waits, and for what beside a message. */
interface Wait {
  readonly until: number;
  readonly pollEnd: AbortSignal;
  /** The version of the assignment that the pod has; undefined for a pod that requests its assignment itself. */
  readonly known: string | undefined;
}

function knownAssignment({ headers }: FastifyRequest): string | undefined {
  const known = headers[ASSIGNMENT_VERSION_HEADER];
  return typeof known === 'string' ? known : undefined;
}

/** For a suspended agent the request waits as if no message arrived. */
async function nextAnswer(
  request: FastifyRequest,
  wait: Wait,
  deps: GatewayDeps,
): Promise<PodDelivery | NoMessage | undefined> {
  const { pod } = request;
  const { pollEnd, known } = wait;
  for (;;) {
    const state = boundState(pod, deps);
    if (deps.draining.aborted || request.disconnected.aborted) return undefined;
    const assignment = known === undefined ? undefined : changedAssignment(state, known, deps);
    if (assignment !== undefined) return { assignment };
    if (state.suspended) {
      if (pollEnd.aborted) return undefined;
      await deps.directory.changed({ podUid: pod.podUid, state }, pollEnd);
      continue;
    }
    const delivery = await fetchWhileBound(pod, state, wait, deps);
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
 * Waits for a message from NATS; undefined when none arrived by `until`, the poll ended, the agent was suspended or has another assignment,
 * or the pod is no longer bound. `ended` aborts when the fetch or the watch of the agent has ended, and so ends the other one.
 */
async function fetchWhileBound(
  pod: PodIdentity,
  state: AgentState,
  { until, pollEnd, known }: Wait,
  deps: GatewayDeps,
): Promise<ReceivedDelivery | undefined> {
  const ended = new AbortController();
  using _listener = onAbort(pollEnd, () => ended.abort(ENDED));
  // Unhandled, an error would end the process, and all pods would pay. It ends the fetch; the caller looks again and meets it in its request.
  const watching = whenChanged(pod, state, known, ended.signal, deps)
    .catch(() => undefined)
    .then(() => ended.abort(ENDED));
  const limit = concurrencyOf(state.agent.spec.limits?.concurrency);
  const receiver = new InboxReceiver(deps.inbox, pod.agentUid, deps.clock, limit);
  try {
    return await receiver.next({ signal: ended.signal, deadline: until, key: '' });
  } catch (error) {
    if (isTemperError(error, 'TEMPER_TIMEOUT') || isTemperError(error, 'TEMPER_CANCELLED')) return undefined;
    throw error;
  } finally {
    ended.abort(ENDED);
    await watching;
  }
}

/**
 * Resolves when the agent may receive no message in this pod any more or has another assignment than the known one, or when the signal
 * aborts. Nothing of this is the case for `state`, which the caller has just read.
 */
async function whenChanged(
  pod: PodIdentity,
  state: AgentState,
  known: string | undefined,
  signal: AbortSignal,
  deps: GatewayDeps,
): Promise<void> {
  const { directory, identity } = deps;
  let current: AgentState | undefined = state;
  while (!signal.aborted) {
    await directory.changed({ podUid: pod.podUid, state: current }, signal);
    current = directory.byUid(pod.agentUid);
    if (current === undefined || current.suspended || !identity.isStillBound(pod.podUid, pod.agentUid)) return;
    if (known !== undefined && changedAssignment(current, known, deps) !== undefined) return;
  }
}

/** The delivery with its token. Undefined when it cannot be delivered to this pod; it was returned or dead-lettered then. */
async function signedDelivery(
  request: FastifyRequest,
  delivery: ReceivedDelivery,
  deps: GatewayDeps,
): Promise<PodDelivery | undefined> {
  const { pod } = request;
  const { message, coordinates, ackTimeoutMs } = delivery;
  // The client disconnected or the pod is no longer bound: the next request of the agent's pod receives the message.
  const bound = deps.identity.isStillBound(pod.podUid, pod.agentUid);
  if (request.disconnected.aborted || !bound) {
    await delivery.retry(0);
    return undefined;
  }
  if (Date.parse(message.deadline) <= deps.clock.now().getTime()) {
    const reason = 'the deadline of its chain passed before it was delivered';
    await delivery.reject('TEMPER_TIMEOUT', reason);
    return undefined;
  }
  if (message.call !== undefined && request.headers[ACCEPTED_MESSAGES_HEADER] !== CALL_MESSAGES) {
    const reason =
      'the pod of the agent is of an older release, which makes no calls for programs of users; replace it';
    await delivery.reject('TEMPER_MESSAGE_INVALID', reason);
    return undefined;
  }
  if (!(await deps.answers.mayDeliver(pod.agentUid, message))) {
    await delivery.ack();
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
    ...passedOn(message),
    at: { streamSequence: coordinates.streamSequence, deliveries: coordinates.deliveries },
  };
  Object.assign(request.logFields, messageLogFields(claims));
  const content = await contentOf(delivery, pod, deps);
  if (content === 'closed') return undefined;
  return {
    message: { ...forReceiver(message), traceparent },
    deliveryToken: deps.deliveryTokens.sign(claims),
    ackTimeoutMs,
    ...(content === undefined ? {} : { session: content }),
  };
}

/** What the delivery token keeps of the message, for the messages and the answer that follow it. */
function passedOn({
  source,
  asker,
  ancestors,
  call,
}: Envelope): Pick<DeliveryTokenClaims, 'source' | 'asker' | 'ancestors' | 'isCall'> {
  return {
    ...(call === undefined ? {} : { isCall: true }),
    ...(source === undefined ? {} : { source }),
    ...(asker === undefined ? {} : { asker }),
    ...(ancestors === undefined ? {} : { ancestors }),
  };
}

function forReceiver(message: Envelope): PodDelivery['message'] {
  const { asker: _asker, ancestors: _ancestors, ...rest } = message;
  return message.source === 'Reply' ? { ...rest, text: answerText(message) } : rest;
}

/** Before the pod gets the message, so that the gateway does not depend on what the pod says about its session. */
async function markByMessage(message: Envelope, { agentUid }: PodIdentity, deps: GatewayDeps): Promise<void> {
  const policy = deps.directory.byUid(agentUid)?.policy?.spec ?? {};
  const sessions = deps.sessionsOf(agentUid);
  if (isPrivateContent(message, policy)) await sessions.markPrivate(message.session);
  if (message.tainted === true || isUntrustedSource(message.source, policy)) await sessions.taint(message.session);
}

/** What the session brings with the message. A message of a closed session is rejected. */
async function contentOf(
  delivery: ReceivedDelivery,
  pod: PodIdentity,
  deps: GatewayDeps,
): Promise<Awaited<ReturnType<GatewayDeps['sessionContent']>> | 'closed'> {
  try {
    await markByMessage(delivery.message, pod, deps);
    return await deps.sessionContent(pod, delivery.message.session);
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_SESSION_CLOSED')) throw error;
    await delivery.reject(error.code, error.message);
    return 'closed';
  }
}
