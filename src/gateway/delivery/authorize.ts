import type { FastifyRequest } from 'fastify';
import type { PodIdentity } from '../../identity/types.ts';
import { DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import type { DeliveryTokenClaims } from './token.ts';
import { messageLogFields } from '../tracing/message-traces.ts';

/** The claims of a valid delivery token, and the current state of its agent. */
export interface AuthorizedDelivery {
  claims: DeliveryTokenClaims;
  state: AgentState;
}

type Deps = Pick<GatewayDeps, 'clock' | 'identity' | 'directory' | 'deliveryTokens'>;

/**
 * Authorizes a request by its delivery token: the token is signed by this installation and issued to the calling pod, the pod is still
 * bound to the agent, the deadline of the chain is ahead and the agent is not suspended. Throws TEMPER_DELIVERY_TOKEN_INVALID,
 * TEMPER_DELIVERY_TOKEN_EXPIRED, TEMPER_POD_NOT_BOUND or TEMPER_AGENT_SUSPENDED.
 */
export function authorizeDelivery(request: FastifyRequest, token: string, deps: Deps): AuthorizedDelivery {
  const delivery = authorizeDeliveryEnd(request, token, deps);
  assertActive(delivery, deps);
  return delivery;
}

/** Throws TEMPER_DELIVERY_TOKEN_EXPIRED or TEMPER_AGENT_SUSPENDED. */
export function assertActive(delivery: AuthorizedDelivery, deps: Pick<GatewayDeps, 'clock'>): void {
  if (Date.parse(delivery.claims.deadline) <= deps.clock.now().getTime()) {
    throw new TemperError('TEMPER_DELIVERY_TOKEN_EXPIRED', 'the deadline of the message chain has passed');
  }
  if (delivery.state.suspended) {
    throw new TemperError('TEMPER_AGENT_SUSPENDED', `agent "${delivery.claims.agent}" is suspended`);
  }
}

/** The same for a request whose delivery token is a header. */
export function authorizeHeader(request: FastifyRequest, deps: Deps): AuthorizedDelivery {
  const token = request.headers[DELIVERY_TOKEN_HEADER];
  if (typeof token === 'string') return authorizeDelivery(request, token, deps);
  throw new TemperError(
    'TEMPER_DELIVERY_TOKEN_INVALID',
    `the request has no delivery token; send that of the current message as header ${DELIVERY_TOKEN_HEADER}`,
  );
}

/** The same for requests that end a delivery: these are allowed after the deadline and for a suspended agent. */
export function authorizeDeliveryEnd(request: FastifyRequest, token: string, deps: Deps): AuthorizedDelivery {
  const claims = claimsFor(request.pod, token, deps);
  Object.assign(request.logFields, messageLogFields(claims));
  return boundDelivery(claims, deps);
}

/** The claims of a delivery token of this pod. Throws TEMPER_DELIVERY_TOKEN_INVALID. */
export function claimsFor(
  pod: PodIdentity,
  token: string,
  { deliveryTokens }: Pick<GatewayDeps, 'deliveryTokens'>,
): DeliveryTokenClaims {
  const claims = deliveryTokens.verify(token);
  if (claims.podUid !== pod.podUid || claims.agentUid !== pod.agentUid || claims.namespace !== pod.namespace) {
    throw new TemperError('TEMPER_DELIVERY_TOKEN_INVALID', 'the delivery token belongs to another pod');
  }
  if (claims.connects !== undefined)
    throw new TemperError('TEMPER_DELIVERY_TOKEN_INVALID', 'the delivery token is for a connection of a gateway');
  return claims;
}

/** The delivery with the state of its agent. Throws TEMPER_POD_NOT_BOUND. */
export function boundDelivery(
  claims: DeliveryTokenClaims,
  deps: Pick<GatewayDeps, 'directory' | 'identity'>,
): AuthorizedDelivery {
  const state = deps.directory.byUid(claims.agentUid);
  if (state === undefined || !deps.identity.isStillBound(claims.podUid, claims.agentUid)) {
    throw new TemperError('TEMPER_POD_NOT_BOUND', 'the pod is no longer bound to this agent');
  }
  return { claims, state };
}

/**
 * The delivery that a pod names without asking for anything. Undefined for one of another pod, of an unknown key or of none: what the pod
 * reports with it is not lost, and counts for no message.
 */
export function deliveryOf(
  { agentUid, podUid }: PodIdentity,
  token: string | undefined,
  { deliveryTokens }: Pick<GatewayDeps, 'deliveryTokens'>,
): DeliveryTokenClaims | undefined {
  if (token === undefined) return undefined;
  try {
    const claims = deliveryTokens.verify(token);
    const isOwn = claims.agentUid === agentUid && claims.podUid === podUid && claims.connects === undefined;
    return isOwn ? claims : undefined;
  } catch (error) {
    if (isTemperError(error, 'TEMPER_DELIVERY_TOKEN_INVALID')) return undefined;
    throw error;
  }
}
