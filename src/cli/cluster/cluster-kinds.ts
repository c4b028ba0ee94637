import { resourceType } from '../../kube/client/resource-path.ts';
import { API_VERSION } from '../../api/names.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { lookupKind } from '../objects/kinds.ts';

/** The kinds on a cluster, by collection name. */
const TYPES: Readonly<Record<string, ResourceType>> = {
  agents: resourceType(API_VERSION, 'agents', 'Agent'),
  trustpolicies: resourceType(API_VERSION, 'trustpolicies', 'TrustPolicy'),
  tools: resourceType(API_VERSION, 'emergenttools', 'EmergentTool'),
  capabilities: resourceType(API_VERSION, 'capabilities', 'Capability'),
  approvalrequests: resourceType(API_VERSION, 'approvalrequests', 'ApprovalRequest'),
  approvals: resourceType(API_VERSION, 'approvals', 'Approval'),
};

export const AGENTS = resourceType(API_VERSION, 'agents', 'Agent');
export const TRUST_POLICIES = resourceType(API_VERSION, 'trustpolicies', 'TrustPolicy');

/** The collection names that users may type for objects on a cluster. */
export const CLUSTER_KINDS: readonly string[] = Object.keys(TYPES);

/** The resource type for a kind name. Throws TEMPER_USAGE, and suggests another verb when there is one. */
export function clusterKind(name: string): ResourceType {
  const { collection } = lookupKind(name);
  const type = TYPES[collection];
  if (type !== undefined) return type;
  const hint = collection === 'sessions' ? 'use `temper sessions AGENT`' : `known: ${CLUSTER_KINDS.join(', ')}`;
  throw new TemperError('TEMPER_USAGE', `"${printable(name, 60)}" is not a kind of object on a cluster; ${hint}`);
}
