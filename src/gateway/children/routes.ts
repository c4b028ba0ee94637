import type { FastifyRequest } from 'fastify';
import { KILL_TOOL, LIST_TOOL, SPAWN_TOOL } from '../../agent/tools/children/child-tools.ts';
import { digestOf } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ChildRequestRecord } from '../../nats/children/child-requests.ts';
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
import type { GatewayDeps } from '../deps.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import { assertBrokeredCall } from '../delivery/brokered-call.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { isChildOf } from './family.ts';
import { knownAgents } from './known-agents.ts';
import { assertAdmitted, endedRequest, recordOf, requestId, stateOf } from './requests.ts';

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
      await deps.recorder.used(delivery.claims, LIST_TOOL.category);
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
    const wanted = wantedChild(input, state.agent.spec, deps.manifests);
    const template = 'template' in wanted.request ? { template: wanted.request.template } : {};
    const requests = [{ kind: 'Spawn' as const, ...template }];
    await assertBrokeredCall(delivery, { tool: SPAWN_TOOL, input, requests, digests: [digestOf(input)], key }, deps);
    assertAdmitted(wanted.request, state, deps);
    const name = childName(state.agent.metadata.name, wanted.name, `${state.uid}/${key}`);
    await deps.childRequests.add(recordOf(delivery, key, name, { kind: 'Spawn', ...wanted.request }, deps));
  }
  const isVisible = ({ name }: ChildRequestRecord): boolean =>
    deps.directory.agent(delivery.claims.namespace, name) !== undefined;
  const found = await endedRequest(request, delivery, waitSeconds, deps, isVisible);
  if (found.state === 'Done') await deps.recorder.used(delivery.claims, SPAWN_TOOL.category);
  return stateOf(found);
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
  const found = await endedRequest(request, delivery, waitSeconds, deps, () => true);
  if (found.state === 'Done') await deps.recorder.used(claims, KILL_TOOL.category);
  return stateOf(found);
}
