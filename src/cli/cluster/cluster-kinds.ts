import { GROUP, VERSION } from '../../api/names.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { lookupKind } from '../objects/kinds.ts';

const temperType = (plural: string, kind: string): ResourceType => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: true,
});

/** The kinds on a cluster, by collection name. */
const TYPES: Readonly<Record<string, ResourceType>> = {
  agents: temperType('agents', 'Agent'),
  trustpolicies: temperType('trustpolicies', 'TrustPolicy'),
  tools: temperType('emergenttools', 'EmergentTool'),
  capabilities: temperType('capabilities', 'Capability'),
  approvalrequests: temperType('approvalrequests', 'ApprovalRequest'),
  approvals: temperType('approvals', 'Approval'),
};

export const AGENTS = temperType('agents', 'Agent');
export const TRUST_POLICIES = temperType('trustpolicies', 'TrustPolicy');

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
