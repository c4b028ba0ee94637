import type { FastifyRequest } from 'fastify';
import { KILL_TOOL, LIST_TOOL, SPAWN_TOOL } from '../../agent/tools/children/child-tools.ts';
import { digestOf, sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ChildOrder, ChildRequestRecord } from '../../nats/children/child-requests.ts';
import { admitChild } from '../../policy/children/admission.ts';
import { childName } from '../../policy/children/child-name.ts';
import { wantedChild } from '../../policy/children/wanted-child.ts';
import {
  ChildState,
  KillRequest,
  KnownAgents,
  ListAgentsRequest,
  SpawnRequest,
} from '../../gateway-api/children/child-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { assertBrokeredCall } from '../delivery/brokered-call.ts';
import { longPollSignal } from '../http/long-poll.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { isChildOf } from './family.ts';
import { knownAgents } from './known-agents.ts';

/** Agents start, end and list other agents. The gateway decides; the operator decides again and changes the objects. */
export function childRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.children,
    {
      config: { access: 'pod', idempotent: true, longPoll: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Starts a child agent',
        body: SpawnRequest,
        response: { 200: ChildState, ...ERROR_RESPONSES },
      },
    },
    async (request) => spawn(request, request.body, deps),
  );
  server.post(
    POD_API_PATHS.endChild,
    {
      config: { access: 'pod', idempotent: true, longPoll: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Ends a child agent',
        body: KillRequest,
        response: { 200: ChildState, ...ERROR_RESPONSES },
      },
    },
    async (request) => kill(request, request.body, deps),
  );
  server.post(
    POD_API_PATHS.listAgents,
    {
      config: { access: 'pod' },
      schema: {
        ...POD_SECURITY,
        summary: 'The agents that the agent may message, end or copy',
        body: ListAgentsRequest,
        response: { 200: KnownAgents, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const delivery = authorizeDelivery(request, request.body.deliveryToken, deps);
      const call = { tool: LIST_TOOL, input: {}, requests: [], digests: [digestOf({})], key: delivery.claims.message };
      await assertBrokeredCall(delivery, call, deps);
      return knownAgents(delivery.state, deps.directory);
    },
  );
}

async function spawn(
  request: FastifyRequest,
  { deliveryToken, input, waitSeconds }: SpawnRequest,
  deps: GatewayDeps,
): Promise<ChildState> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { state } = delivery;
  const key = request.idempotencyKey;
  const known = await deps.childRequests.wait(state.uid, requestId(key), 0, request.disconnected);
  if (known === undefined) {
    const wanted = wantedChild(input, state.agent.spec);
    const template = 'template' in wanted.request ? { template: wanted.request.template } : {};
    const requests = [{ kind: 'Spawn' as const, ...template }];
    await assertBrokeredCall(delivery, { tool: SPAWN_TOOL, input, requests, digests: [digestOf(input)], key }, deps);
    assertAdmitted(wanted.request, state, deps);
    const name = childName(state.agent.metadata.name, wanted.name, `${state.uid}/${key}`);
    await deps.childRequests.add(recordOf(delivery, key, name, { kind: 'Spawn', ...wanted.request }, deps));
  }
  return ended(request, delivery, waitSeconds, deps, (name) => {
    return deps.directory.agent(delivery.claims.namespace, name) !== undefined;
  });
}

async function kill(
  request: FastifyRequest,
  { deliveryToken, agent, waitSeconds }: KillRequest,
  deps: GatewayDeps,
): Promise<ChildState> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { claims, state } = delivery;
  const key = request.idempotencyKey;
  const known = await deps.childRequests.wait(state.uid, requestId(key), 0, request.disconnected);
  if (known === undefined) {
    const target = deps.directory.agent(claims.namespace, agent);
    const input = { agent };
    const requests = [{ kind: 'Kill' as const, agent, child: isChildOf(target, state) }];
    await assertBrokeredCall(delivery, { tool: KILL_TOOL, input, requests, digests: [digestOf(input)], key }, deps);
    if (target === undefined || target.ancestors.length === 0) {
      throw new TemperError('TEMPER_NOT_FOUND', `there is no child agent "${agent}"; only children can be ended`);
    }
    await deps.childRequests.add(recordOf(delivery, key, agent, { kind: 'Kill', uid: target.uid }, deps));
  }
  return ended(request, delivery, waitSeconds, deps, () => true);
}

/** The first of two decisions. The operator makes the second one, with what the API server has at that moment. */
function assertAdmitted(
  request: Parameters<typeof admitChild>[0],
  state: AgentState,
  { directory }: Pick<GatewayDeps, 'directory'>,
): void {
  const { name, namespace = '' } = state.agent.metadata;
  const template = 'template' in request ? directory.agent(namespace, request.template) : undefined;
  const admission = admitChild(request, {
    parent: { name, spec: state.agent.spec },
    policy: state.policy?.spec ?? {},
    template: template === undefined ? undefined : { name: template.agent.metadata.name, spec: template.agent.spec },
    children: directory.children(state.uid).length,
    total: directory.childrenUnder(namespace, state.agent.spec.trustPolicyRef.name),
  });
  if ('refused' in admission) throw new TemperError('TEMPER_CHILD_REFUSED', admission.refused);
}

function recordOf(
  { claims, state }: AuthorizedDelivery,
  key: string,
  name: string,
  order: ChildOrder,
  { clock }: Pick<GatewayDeps, 'clock'>,
): ChildRequestRecord {
  const parent = { uid: state.uid, name: claims.agent, namespace: claims.namespace };
  return { id: requestId(key), parent, name, state: 'Requested', order, time: clock.now().toISOString() };
}

function requestId(key: string): string {
  return sha256(key).slice('sha256:'.length, 'sha256:'.length + 32);
}

const VISIBLE_MS = 50;
const MAX_VISIBLE_MS = 3_000;

/** Waits for the operator, and then until this gateway knows the child, so that the next call can name it. */
async function ended(
  request: FastifyRequest,
  { state: { uid } }: AuthorizedDelivery,
  waitSeconds: number,
  deps: GatewayDeps,
  isVisible: (name: string) => boolean,
): Promise<ChildState> {
  const milliseconds = waitSeconds * 1_000;
  const signal = longPollSignal(milliseconds, request, deps);
  const found = await deps.childRequests.wait(uid, requestId(request.idempotencyKey), milliseconds, signal);
  if (found === undefined) throw new TemperError('TEMPER_NATS_DATA_LOST', 'NATS lost the request; repeat it');
  const until = deps.clock.monotonic() + MAX_VISIBLE_MS;
  while (found.state === 'Done' && !isVisible(found.name) && deps.clock.monotonic() < until && !signal.aborted) {
    await deps.clock.sleep(VISIBLE_MS, signal).catch(() => undefined);
  }
  const { name, state, reason } = found;
  return { name, state, ...(reason === undefined ? {} : { reason }) };
}
