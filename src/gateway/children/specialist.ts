import type { FastifyRequest } from 'fastify';
import { SPECIALIST_TOOL } from '../../agent/tools/children/specialist-tool.ts';
import { modelNames } from '../../api/names.ts';
import { ChildState, SpecialistRequest } from '../../gateway-api/children/child-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { ChildRequestRecord } from '../../nats/children/child-requests.ts';
import { messageId } from '../../nats/inbox/inbox.ts';
import { senderOf } from '../../nats/inbox/message-ports.ts';
import { childName } from '../../policy/children/child-name.ts';
import {
  assertSpecialistLimits,
  SPECIALIST_GRACE_MS,
  SPECIALIST_JUDGE_TIMEOUT_MS,
} from '../../policy/children/specialist-limits.ts';
import { wantedSpecialist, type WantedSpecialist } from '../../policy/children/wanted-specialist.ts';
import { specialistRefusal } from '../../tempering/specialist/specialist-judge.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { assertBrokeredCall } from '../delivery/brokered-call.ts';
import type { RouteModule } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { modelAccessFor, type ModelAccessDeps } from '../models/agent-model-access.ts';
import { nextDepth } from '../../agent/messages/chain.ts';
import { sendOnward } from '../pods/messages.ts';
import { parentSpanOf } from '../tracing/message-traces.ts';
import { assertAdmitted, endedRequest, recordOf, requestId, stateOf } from './requests.ts';

type ModelDeps = Omit<ModelAccessDeps, 'directory'>;

/** An agent has one task done by an agent that it instructs: policy, admission, judge, child, task. */
export function specialistRoutes(own: ModelDeps): RouteModule {
  return (server, deps) => {
    server.post(
      POD_API_PATHS.specialists,
      {
        config: { access: 'pod', idempotent: true, longPoll: true },
        schema: {
          ...POD_SECURITY,
          summary: 'Starts a specialist for one task',
          body: SpecialistRequest,
          response: { 200: ChildState, ...ERROR_RESPONSES },
        },
      },
      async (request) => specialist(request, request.body, own, deps),
    );
  };
}

async function specialist(
  request: FastifyRequest,
  { deliveryToken, input, tainted = false, waitSeconds }: SpecialistRequest,
  own: ModelDeps,
  deps: GatewayDeps,
): Promise<ChildState> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { state, claims } = delivery;
  const key = request.idempotencyKey;
  const wanted = wantedSpecialist(input, state.agent.spec, deps.manifests);
  const known = await deps.childRequests.wait(state.uid, requestId(key), 0, request.disconnected);
  if (known === undefined) {
    const call = {
      tool: SPECIALIST_TOOL,
      input,
      requests: [{ kind: 'Spawn' as const }],
      digests: [digestOf(input)],
      key,
    };
    await assertBrokeredCall(delivery, call, deps);
    await open(request, delivery, wanted, own, deps);
  }
  const isVisible = ({ name, specialist: of }: ChildRequestRecord): boolean =>
    of?.ticket !== undefined || deps.directory.agent(claims.namespace, name) !== undefined;
  const found = await endedRequest(request, delivery, waitSeconds, deps, isVisible);
  if (found.state !== 'Done') return stateOf(found);
  const ticket = await giveTask(request, delivery, found, { text: wanted.task, tainted }, deps);
  // This gateway does not know the new agent yet.
  return ticket === undefined ? { ...stateOf(found), state: 'Requested' } : { ...stateOf(found), ticket };
}

/** Decides about a new request and stores it, also when the judge refuses: a repeated call gets the same answer. */
async function open(
  request: FastifyRequest,
  delivery: AuthorizedDelivery,
  wanted: WantedSpecialist,
  own: ModelDeps,
  deps: GatewayDeps,
): Promise<void> {
  const { claims, state } = delivery;
  const key = request.idempotencyKey;
  const name = childName(state.agent.metadata.name, wanted.name, `${state.uid}/${key}`);
  nextDepth(claims.agent, name, claims.depth);
  await assertWithinLimits(delivery, deps);
  assertAdmitted({ spec: wanted.spec }, state, deps);
  const refused = await refusalOf(request, delivery, wanted, own, deps);
  await assertWithinLimits(delivery, deps);
  const endsAt = new Date(Date.parse(claims.deadline) + SPECIALIST_GRACE_MS).toISOString();
  const order = { kind: 'Spawn' as const, spec: wanted.spec, endsAt };
  const record = { ...recordOf(delivery, key, name, order, deps), specialist: { message: claims.message } };
  if (refused === undefined) return deps.childRequests.add(record);
  const { order: _order, ...ended } = record;
  await deps.childRequests.add({ ...ended, state: 'Refused', reason: refused });
}

async function assertWithinLimits({ claims, state }: AuthorizedDelivery, deps: GatewayDeps): Promise<void> {
  const before = await deps.childRequests.specialists(state.uid, claims.message);
  const started = before.filter((one) => one.state !== 'Refused').length;
  assertSpecialistLimits({ started, asked: before.length });
}

async function refusalOf(
  request: FastifyRequest,
  { claims, state }: AuthorizedDelivery,
  wanted: WantedSpecialist,
  own: ModelDeps,
  deps: GatewayDeps,
): Promise<string | undefined> {
  const access = modelAccessFor({ ...own, directory: deps.directory }, state, false, { root: claims.root });
  const { primary, routing, fallbacks, judge, judgeMayBeAuthor } = access.agentModel();
  const op = {
    signal: request.disconnected,
    deadline: deps.clock.monotonic() + SPECIALIST_JUDGE_TIMEOUT_MS,
    key: request.idempotencyKey,
  };
  return specialistRefusal(
    wanted,
    {
      model: access.meteredModel,
      judge,
      authors: modelNames({ primary, routing, fallbacks }),
      judgeMayBeAuthor,
      clock: deps.clock,
      nonce: () => deps.ids.next('nonce'),
    },
    op,
  );
}

/** Sends the task once and returns its ticket; undefined while this gateway does not know the agent. */
async function giveTask(
  request: FastifyRequest,
  delivery: AuthorizedDelivery,
  { name, specialist: of }: ChildRequestRecord,
  task: { text: string; tainted: boolean },
  deps: GatewayDeps,
): Promise<string | undefined> {
  const { claims, state } = delivery;
  const key = `${request.idempotencyKey}/task`;
  const receiver = deps.directory.agent(claims.namespace, name);
  // It has ended, with its task.
  if (receiver === undefined) return of?.ticket;
  const id = messageId(senderOf(state.uid, receiver.uid, key));
  const ticket = await deps.childRequests.ticket(state.uid, requestId(request.idempotencyKey), id);
  const op = { signal: request.disconnected, deadline: Number.POSITIVE_INFINITY, key };
  const parent = parentSpanOf(claims, request.headers[TRACEPARENT]);
  const draft = { to: name, session: claims.session, ...task };
  await sendOnward(delivery, { draft, ask: {} }, op, parent, deps);
  return ticket;
}
