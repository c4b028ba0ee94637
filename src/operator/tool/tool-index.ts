import type { Cache } from '../kube/cache.ts';
import { promotionDigest, type StoredApproval, type StoredRequest } from '../approval/stored-decision.ts';
import type { StoredTool } from './stored-tool.ts';

/** Names of the cache indexes. Each value begins with the namespace, because a namespace is a tenant. */
export const TOOL_INDEX = {
  /** Tools, Approvals and ApprovalRequests by digest. */
  digest: 'digest',
  /** Tools by the name that models use. */
  name: 'name',
  /** Tools by the digests that their steps call. */
  steps: 'steps',
  /** Tools of tier Agent by their agent; ApprovalRequests by the agent that asks. */
  agent: 'agent',
  /** Tools by namespace. */
  namespace: 'namespace',
  /** Tools of tier Shared by namespace. */
  shared: 'shared',
} as const;

export interface ToolCaches {
  readonly tools: Cache<StoredTool>;
  readonly approvals: Cache<StoredApproval>;
  readonly requests: Cache<StoredRequest>;
}

export function inNamespace(namespace: string, value: string): string {
  return `${namespace}/${value}`;
}

export function addToolIndexes({ tools, approvals, requests }: ToolCaches): void {
  tools.addIndex(TOOL_INDEX.digest, ({ metadata, facts }) => [inNamespace(metadata.namespace, facts.digest)]);
  tools.addIndex(TOOL_INDEX.name, ({ metadata, facts }) => [inNamespace(metadata.namespace, facts.tool)]);
  tools.addIndex(TOOL_INDEX.steps, ({ metadata, facts }) => [
    ...new Set(
      facts.steps.flatMap(({ digest }) => (digest === undefined ? [] : inNamespace(metadata.namespace, digest))),
    ),
  ]);
  tools.addIndex(TOOL_INDEX.agent, ({ metadata, facts: { tier, agent } }) =>
    tier === 'Agent' && agent !== undefined ? [inNamespace(metadata.namespace, agent)] : [],
  );
  tools.addIndex(TOOL_INDEX.namespace, ({ metadata }) => [metadata.namespace]);
  tools.addIndex(TOOL_INDEX.shared, ({ metadata, facts }) => (facts.tier === 'Shared' ? [metadata.namespace] : []));
  approvals.addIndex(TOOL_INDEX.digest, ({ metadata, record }) =>
    digestsOf(metadata.namespace, promotionDigest(record.subject)),
  );
  requests.addIndex(TOOL_INDEX.digest, ({ metadata, spec }) =>
    digestsOf(metadata.namespace, promotionDigest(spec.subject)),
  );
  requests.addIndex(TOOL_INDEX.agent, ({ metadata, spec }) => [inNamespace(metadata.namespace, spec.agent.uid)]);
}

function digestsOf(namespace: string, digest: string | undefined): string[] {
  return digest === undefined ? [] : [inNamespace(namespace, digest)];
}
