import type { FastifyRequest } from 'fastify';
import { CallApproval, CallApprovalRequest, UseApprovalRequest } from '../../gateway-api/delivery-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { PendingCall } from '../../nats/pending-calls.ts';
import { toolRequest, policyDenied } from '../../tools/authorize.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { AgentEvent, StampedEvent } from '../../tools/events.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { withholdsSources } from '../storage/withheld-sessions.ts';
import { descriptionOnlyView } from '../review/tool-view.ts';

/** Events may be repeated so long: NATS stores one of those with the same key within 30 minutes. */
const REPEATABLE_MS = 20 * 60_000;

/** Approvals of calls for pods: a request and its state, and the use of an approval. */
export function approvalRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.approvals,
    {
      config: { access: 'pod' },
      schema: {
        ...POD_SECURITY,
        summary: 'Requests the approval of a call, or reads the state of the request',
        body: CallApprovalRequest,
        response: { 200: CallApproval, ...ERROR_RESPONSES },
      },
    },
    async (request) => requestApproval(request, request.body, deps),
  );
  server.post(
    POD_API_PATHS.useApproval,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Uses an approval, once, before its call starts',
        body: UseApprovalRequest,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { claims } = authorizeDelivery(request, request.body.deliveryToken, deps);
      const call = await deps.approvals.use(claims, request.body.request, request.idempotencyKey);
      await recordUse(call, deps);
      return reply.code(204).send(null);
    },
  );
}

/** Rule, risk and reason are those of the gateway's own decision, whatever the pod would say. */
async function requestApproval(
  request: FastifyRequest,
  { deliveryToken, tool, input, callKey }: CallApprovalRequest,
  deps: GatewayDeps,
): Promise<CallApproval> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { claims, state } = delivery;
  const [descriptor, { tainted, hasPrivateData }] = await Promise.all([
    descriptorOf(tool, delivery, deps),
    deps.sessions.marks(claims.agentUid, claims.session),
  ]);
  const decision = deps.directory.decider(state, tainted, { hasPrivateData }).decide(toolRequest(descriptor, input));
  if (decision.effect === 'Deny') throw policyDenied(decision);
  const call = await deps.approvals.request({
    claims,
    policy: state.policy,
    descriptor,
    input,
    callKey,
    decision,
    withholds: withholdsSources(state),
  });
  await publishState(call, claims, deps);
  const { by = '', reason = '' } = call.decision ?? {};
  return {
    request: call.request,
    decision: call.decision?.decision ?? 'Pending',
    by: printable(by, 253),
    reason: printable(reason, 2_000),
  };
}

async function descriptorOf(name: string, { claims }: AuthorizedDelivery, deps: GatewayDeps): Promise<ToolDescriptor> {
  const { agent, namespace, session } = claims;
  const view = descriptionOnlyView(await deps.toolsOf(claims, session), { agent, namespace, session }, deps.brokered);
  const found = view.find(name)?.descriptor;
  if (found !== undefined) return found;
  throw new TemperError('TEMPER_TOOL_NOT_FOUND', `the session has no tool "${printable(name, 63)}"`);
}

/** Again with a repeated request: a gateway may have stored it and ended before it published the event, which NATS stores once. */
async function publishState(call: PendingCall, claims: DeliveryTokenClaims, deps: GatewayDeps): Promise<void> {
  const { request, tool, risk, summary, decision, createdAt } = call;
  const age = deps.clock.now().getTime() - Date.parse(createdAt);
  if (age < REPEATABLE_MS)
    await publish({ type: 'approval-requested', request, tool, risk, reason: summary }, claims, deps);
  if (decision === undefined) return;
  const by = printable(decision.by, 253);
  await publish({ type: 'approval-decided', request, decision: decision.decision, by }, claims, deps);
}

/** Followers of the session see each state of a request once. A client misses an event that cannot be published. */
async function publish(
  event: AgentEvent,
  claims: DeliveryTokenClaims,
  { events, clock, log }: GatewayDeps,
): Promise<void> {
  const { agentUid, agent, session, root } = claims;
  const stamped = { ...event, time: clock.now().toISOString(), agent, session, rootMessage: root };
  const subject = 'request' in event ? event.request : '';
  try {
    await events.append(
      agentUid,
      session,
      { kind: 'event', event: stamped },
      { once: `approval/${subject}/${event.type}` },
    );
  } catch (error) {
    log.warn({ error, request: subject }, 'an event of an approval could not be published');
  }
}

/** Followers of the session see why no reply comes. */
export async function publishParked(
  requests: readonly string[],
  claims: DeliveryTokenClaims,
  deps: GatewayDeps,
): Promise<void> {
  const { agentUid, agent, session, root } = claims;
  const time = deps.clock.now().toISOString();
  const event: StampedEvent = {
    type: 'turn-parked',
    requests: [...requests],
    time,
    agent,
    session,
    rootMessage: root,
  };
  const once = `parked/${claims.message}/${requests.join(',')}`;
  try {
    await deps.events.append(agentUid, session, { kind: 'event', event }, { once });
  } catch (error) {
    deps.log.warn({ error, session }, 'the event of a parked turn could not be published');
  }
}

async function recordUse(call: PendingCall, { audit }: GatewayDeps): Promise<void> {
  const { namespace, agentUid, agent, request, tool, argumentsDigest, callId, decision, used } = call;
  const record = {
    action: 'approval.used',
    actor: `agent/${agent}`,
    evidence: 'observed',
    subject: request,
    facts: { tool, argumentsDigest, callId, by: decision?.by ?? '' },
  } as const;
  await audit.append({ namespace, agentUid }, record, `approval/${agentUid}/${request}/${used?.at ?? ''}`);
}
