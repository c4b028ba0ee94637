import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/** The delivery to an agent that makes the call. */
export const CLAIMS = {
  agent: 'analyst',
  agentUid: 'uid-1',
  namespace: 'team-a',
  session: 's-1',
  message: 'msg-1',
  at: { streamSequence: 7, deliveries: 1 },
} as DeliveryTokenClaims;

export function aPolicy(approvals: TrustPolicy['spec']['approvals'] = {}): TrustPolicy {
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata: { name: 'p' }, spec: { approvals } };
}
