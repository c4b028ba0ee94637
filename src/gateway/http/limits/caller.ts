import type { RequestContext } from '../request-context.ts';

/** The accounts that a request counts against. */
export interface Caller {
  /** One agent, one warm pod, one verifier pod, one replica of the egress proxy, one ServiceAccount that calls over A2A, or all users of a namespace. */
  id: string;
  namespace: string;
  /**
   * All pods, or all ServiceAccounts, of the namespace. Absent for verifiers, for the egress proxy, and for users, so that pods cannot exhaust the share of the
   * users who stop them.
   */
  group?: string;
}

/** Undefined for a request without authentication. */
export function callerOf({ pod, podToken, verifier, egress, user, peer }: RequestContext): Caller | undefined {
  if (pod !== undefined) return podCaller(`agent/${pod.agentUid}`, pod.namespace);
  // Each verifier counts for itself: one that a hostile tool took over must not delay the others.
  if (verifier !== undefined) return { id: `verifier/${verifier.podUid}`, namespace: verifier.namespace };
  if (egress !== undefined) return { id: `egress/${egress.podUid}`, namespace: egress.namespace };
  // A pod that requests its assignment may be bound already; it then uses the limits of its agent.
  if (podToken !== undefined) {
    const id = 'agentUid' in podToken ? `agent/${podToken.agentUid}` : `pod/${podToken.podUid}`;
    return podCaller(id, podToken.namespace);
  }
  if (peer !== undefined) {
    const { namespace, account } = peer;
    return { id: `peer/${namespace}/${account}`, namespace, group: `peers/${namespace}` };
  }
  return user === undefined ? undefined : { id: `users/${user.namespace}`, namespace: user.namespace };
}

function podCaller(id: string, namespace: string): Caller {
  return { id, namespace, group: `pods/${namespace}` };
}
