import { GROUP, VERSION } from '../../api/names.ts';
import type { ResourceType } from '../../kube/client.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/escape.ts';
import { kindNamed } from '../kinds.ts';

const own = (plural: string, kind: string): ResourceType => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: true,
});

/** The kinds a cluster serves, by the collection they are in. */
const TYPES: Readonly<Record<string, ResourceType>> = {
  agents: own('agents', 'Agent'),
  trustpolicies: own('trustpolicies', 'TrustPolicy'),
  tools: own('emergenttools', 'EmergentTool'),
  capabilities: own('capabilities', 'Capability'),
  approvalrequests: own('approvalrequests', 'ApprovalRequest'),
  approvals: own('approvals', 'Approval'),
};

export const AGENTS = own('agents', 'Agent');
export const TRUST_POLICIES = own('trustpolicies', 'TrustPolicy');

/** What people may type for a kind that is an object. */
export const CLUSTER_KINDS: readonly string[] = Object.keys(TYPES);

/** Throws TEMPER_USAGE, with another verb where there is one. */
export function clusterKind(name: string): ResourceType {
  const { collection } = kindNamed(name);
  const type = TYPES[collection];
  if (type !== undefined) return type;
  const other = collection === 'sessions' ? 'use `temper sessions AGENT`' : `known: ${CLUSTER_KINDS.join(', ')}`;
  throw new TemperError('TEMPER_USAGE', `"${printable(name, 60)}" is no kind of object on a cluster; ${other}`);
}
