import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { PodIdentity } from '../identity/types.ts';
import { TemperError } from '../lib/errors.ts';
import type { InboxDelivery } from '../nats/inbox.ts';
import { PATHS, type WireDelivery } from '../remote/wire.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { waitSignal } from './long-poll.ts';
import { factsOf, receivedTrace } from './message-traces.ts';
import type { LeaseClaims } from './lease.ts';
import type { GatewayServer } from './routes.ts';
import { closed, Nothing, POD, REFUSALS } from './schemas.ts';

const NextBody = Type.Object(
  {
    waitSeconds: Type.Number({ minimum: 0, maximum: 60, description: 'How long to wait for one.' }),
    restarted: Type.Optional(
      Type.Boolean({ description: 'The process that asks is a new one: the message its pod held is delivered again.' }),
    ),
  },
  closed,
);

/** Gives pods their messages, one at a time, each with a lease. */
export function deliveryRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    PATHS.nextMessage,
    {
      config: { access: 'pod', longPoll: true },
      schema: {
        ...POD,
        summary: 'The next message of the agent',
        body: NextBody,
        response: { 200: Type.Unknown({ description: '`WireDelivery`.' }), 204: Nothing, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const signal = waitSignal(request.body.waitSeconds * 1_000, request, deps);
      const until = deps.clock.monotonic() + request.body.waitSeconds * 1_000;
      if (request.body.restarted === true) await giveBack(request.pod, deps);
      const found = await nextDelivery(request, until, signal, deps);
      return found === undefined ? reply.code(204).send(null) : found;
    },
  );
}

/** An agent works on one message at a time, so one that was just started works on none: its own lease would only keep it waiting. */
async function giveBack(pod: PodIdentity, deps: GatewayDeps): Promise<void> {
  boundState(pod, deps);
  const given = await deps.inbox.release(pod.agentUid);
  if (given)
    deps.log.info({ agent: pod.agent, pod: pod.podUid }, 'a pod that was started again gets its message again');
}

/** A suspended agent waits here as if nothing came. */
async function nextDelivery(
  request: FastifyRequest,
  until: number,
  signal: AbortSignal,
  deps: GatewayDeps,
): Promise<WireDelivery | undefined> {
  const { pod } = request;
  for (;;) {
    const state = boundState(pod, deps);
    if (deps.draining.aborted || request.gone.aborted) return undefined;
    if (state.suspended) {
      if (signal.aborted) return undefined;
      await deps.directory.changed({ podUid: pod.podUid, state }, signal);
      continue;
    }
    const delivery = await fetchWhileBound(pod, state, Math.max(0, until - deps.clock.monotonic()), signal, deps);
    const given = delivery === undefined ? undefined : await give(request, delivery, deps);
    if (given !== undefined) return given;
    if (signal.aborted) return undefined;
  }
}

/** Throws TEMPER_POD_NOT_BOUND when the pod is this agent no more. */
function boundState(pod: PodIdentity, { identity, directory }: GatewayDeps): AgentState {
  const state = directory.byUid(pod.agentUid);
  if (state === undefined || !identity.stillBound(pod.podUid, pod.agentUid)) {
    throw new TemperError('TEMPER_POD_NOT_BOUND', 'the pod is bound to its agent no more');
  }
  return state;
}

/** Waits at the bus, but no longer than the agent stays what it is: who is suspended or replaced meanwhile gets nothing. */
async function fetchWhileBound(
  pod: PodIdentity,
  state: AgentState,
  waitMilliseconds: number,
  signal: AbortSignal,
  deps: GatewayDeps,
): Promise<InboxDelivery | undefined> {
  const watching = new AbortController();
  const changed = new AbortController();
  const either = AbortSignal.any([signal, changed.signal]);
  const watch = async (): Promise<void> => {
    while (!watching.signal.aborted) {
      const now = deps.directory.byUid(pod.agentUid);
      if (now === undefined || now.suspended || !deps.identity.stillBound(pod.podUid, pod.agentUid)) changed.abort();
      if (changed.signal.aborted) return;
      await deps.directory.changed({ podUid: pod.podUid, state }, watching.signal);
    }
  };
  const watched = watch();
  try {
    return await deps.inbox.fetchNext(pod.agentUid, waitMilliseconds, either);
  } finally {
    watching.abort();
    await watched;
  }
}

/** The delivery with its lease; undefined when it is not to be given, and then it was settled. */
async function give(
  request: FastifyRequest,
  { message, coordinates, leaseMilliseconds }: InboxDelivery,
  deps: GatewayDeps,
): Promise<WireDelivery | undefined> {
  const { pod } = request;
  // Nobody is there to take it, or somebody else is the agent now: it is the next one's.
  const bound = deps.identity.stillBound(pod.podUid, pod.agentUid);
  if (request.gone.aborted || !bound) {
    await deps.inbox.retry(coordinates, 0);
    return undefined;
  }
  if (Date.parse(message.deadline) <= deps.clock.now().getTime()) {
    const reason = 'the deadline of its chain was over before it was delivered';
    await deps.inbox.reject(coordinates, 'TEMPER_TIMEOUT', reason);
    return undefined;
  }
  const traceparent = await receivedTrace(message);
  const claims: LeaseClaims = {
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
  Object.assign(request.about, factsOf(claims));
  return { message: { ...message, traceparent }, lease: deps.leases.sign(claims), leaseMilliseconds };
}
