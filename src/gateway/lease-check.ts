import type { FastifyRequest } from 'fastify';
import { TemperError } from '../lib/errors.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import type { LeaseClaims } from './lease.ts';
import { factsOf } from './message-traces.ts';

/** A lease that holds, and the agent as it is now. */
export interface HeldLease {
  claims: LeaseClaims;
  state: AgentState;
}

type Deps = Pick<GatewayDeps, 'clock' | 'identity' | 'directory' | 'leases'>;

/**
 * What every call under a lease begins with: signed by us, given to the pod that calls, which still is that agent; the
 * deadline of the chain is ahead and nobody told the agent to stop. Throws TEMPER_LEASE_INVALID, TEMPER_LEASE_EXPIRED,
 * TEMPER_POD_NOT_BOUND or TEMPER_AGENT_SUSPENDED.
 */
export function leaseOf(request: FastifyRequest, lease: string, deps: Deps): HeldLease {
  const held = settlingLeaseOf(request, lease, deps);
  if (Date.parse(held.claims.deadline) <= deps.clock.now().getTime()) {
    throw new TemperError('TEMPER_LEASE_EXPIRED', 'the deadline of the chain of messages is over');
  }
  if (held.state.suspended) {
    throw new TemperError('TEMPER_AGENT_SUSPENDED', `agent "${held.claims.agent}" is suspended`);
  }
  return held;
}

/** The same for what ends a delivery, which a late or suspended agent may still do. */
export function settlingLeaseOf(request: FastifyRequest, lease: string, deps: Deps): HeldLease {
  const claims = deps.leases.read(lease);
  const { pod } = request;
  if (claims.podUid !== pod.podUid || claims.agentUid !== pod.agentUid || claims.namespace !== pod.namespace) {
    throw new TemperError('TEMPER_LEASE_INVALID', 'the lease is one of another pod');
  }
  Object.assign(request.about, factsOf(claims));
  const state = deps.directory.byUid(claims.agentUid);
  if (state === undefined || !deps.identity.stillBound(claims.podUid, claims.agentUid)) {
    throw new TemperError('TEMPER_POD_NOT_BOUND', 'the pod is bound to this agent no more');
  }
  return { claims, state };
}
