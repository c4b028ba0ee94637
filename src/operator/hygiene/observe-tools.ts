import { ANNOTATIONS } from '../../api/cluster.ts';
import { type DeactivatedTool, deactivationOf } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import { type Digest, isDigest } from '../../lib/canonical.ts';
import { maxHarmPercent } from '../../tempering/hygiene/tool-hygiene.ts';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { ToolMarks, TrustEvidence } from '../ports.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
import type { AgentTool, ObservedAgentTools } from './plan.ts';

export interface ObserveToolsDeps {
  readonly tools: Cache<StoredTool>;
  readonly trustEvidence: Pick<TrustEvidence, 'tools'> | undefined;
}

/** The tools of an agent and what its records say about them. Undefined for an agent that has none, and whose status names none. */
export function observeTools(
  { tools: cache, trustEvidence }: ObserveToolsDeps,
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  now: Date,
): ObservedAgentTools | undefined {
  const before = agent.status?.deactivatedTools ?? [];
  const tools = toolsOf(cache, agent, before);
  const pairsBefore = agent.status?.toolsUsedTogether ?? [];
  const known = [...tools, ...before, ...pairsBefore];
  if (policy === undefined || known.length === 0) return undefined;
  const evidence = trustEvidence?.tools(agent.metadata.uid, marksOf(tools, before, policy));
  return { now, before, pairsBefore, tools, evidence };
}

function toolsOf(cache: Cache<StoredTool>, agent: StoredAgent, before: readonly DeactivatedTool[]): AgentTool[] {
  const { namespace, name, uid } = agent.metadata;
  const own = cache
    .byIndex(TOOL_INDEX.agent, inNamespace(namespace, name))
    .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
  const found = new Map<Digest, AgentTool>();
  for (const tool of [...own, ...cache.byIndex(TOOL_INDEX.shared, namespace)]) {
    const seen = found.get(tool.facts.digest);
    // Of two objects of one digest the one in service counts: the other one is at the tier below.
    if (seen?.inService !== true) found.set(tool.facts.digest, agentTool(tool, before));
  }
  return [...found.values()];
}

function agentTool({ metadata, facts, status }: StoredTool, before: readonly DeactivatedTool[]): AgentTool {
  const verification =
    status?.verification?.observedGeneration === metadata.generation ? status.verification : undefined;
  return {
    digest: facts.digest,
    name: facts.tool,
    inService: status?.active === true && deactivationOf(before, facts.digest) === undefined,
    createdAt: metadata.creationTimestamp,
    verification,
    replaces: replacedBy(facts.replaces),
  };
}

/** The annotation with which a promotion names the tool that leaves for the new one. */
export function replacesAnnotation(digest: Digest, message: string): Record<string, string> {
  return { [ANNOTATIONS.replaces]: `${digest} ${message}` };
}

function replacedBy(annotation: string | undefined): AgentTool['replaces'] {
  const [digest, ...words] = (annotation ?? '').split(' ');
  return isDigest(digest) ? { digest, message: words.join(' ') } : undefined;
}

function marksOf(tools: readonly AgentTool[], before: readonly DeactivatedTool[], { spec }: StoredPolicy): ToolMarks {
  const returned = new Map(before.map(({ digest, reactivatedAt }) => [digest, Date.parse(reactivatedAt ?? '') || 0]));
  const inService = tools.filter((tool) => tool.inService);
  return {
    maxHarmPercent: maxHarmPercent(spec),
    maxErrorPercent: promotionRules(spec).maxErrorPercent,
    tools: inService.map(({ digest }) => ({ digest, countFrom: returned.get(digest) ?? 0 })),
  };
}
