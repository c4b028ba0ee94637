import type { FastifyRequest } from 'fastify';
import type { ChildState } from '../../gateway-api/children/child-schemas.ts';
import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ChildOrder, ChildRequestRecord } from '../../nats/children/child-requests.ts';
import { admitChild } from '../../policy/children/admission.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import type { AuthorizedDelivery } from '../delivery/authorize.ts';
import { longPollSignal } from '../http/long-poll.ts';

/** The first of two decisions. The operator makes the second one, with what the API server has at that moment. */
export function assertAdmitted(
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

export function recordOf(
  { claims, state }: AuthorizedDelivery,
  key: string,
  name: string,
  order: ChildOrder,
  { clock }: Pick<GatewayDeps, 'clock'>,
): ChildRequestRecord {
  const parent = { uid: state.uid, name: claims.agent, namespace: claims.namespace };
  return { id: requestId(key), parent, name, state: 'Requested', order, time: clock.now().toISOString() };
}

/** Identifies the request of a call among those of its agent. */
export function requestId(key: string): string {
  return sha256(key).slice('sha256:'.length, 'sha256:'.length + 32);
}

const VISIBLE_MS = 50;
const MAX_VISIBLE_MS = 3_000;

/** Waits for the operator, and then until this gateway knows the child, so that the next call can name it. */
export async function endedRequest(
  request: FastifyRequest,
  { state: { uid } }: AuthorizedDelivery,
  waitSeconds: number,
  deps: GatewayDeps,
  isVisible: (request: ChildRequestRecord) => boolean,
): Promise<ChildRequestRecord> {
  const milliseconds = waitSeconds * 1_000;
  const signal = longPollSignal(milliseconds, request, deps);
  const found = await deps.childRequests.wait(uid, requestId(request.idempotencyKey), milliseconds, signal);
  if (found === undefined) throw new TemperError('TEMPER_NATS_DATA_LOST', 'NATS lost the request; repeat it');
  const until = deps.clock.monotonic() + MAX_VISIBLE_MS;
  while (found.state === 'Done' && !isVisible(found) && deps.clock.monotonic() < until && !signal.aborted) {
    await deps.clock.sleep(VISIBLE_MS, signal).catch(() => undefined);
  }
  return found;
}

export function stateOf({ name, state, reason }: ChildRequestRecord): ChildState {
  return { name, state, ...(reason === undefined ? {} : { reason }) };
}
