import { isDeactivated, MAX_DEACTIVATED_TOOLS } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import { splitReference } from '../../forge/request.ts';
import type { Digest } from '../../lib/canonical.ts';
import { describeLeaving, leastUseful } from '../../tempering/hygiene/least-useful.ts';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { TOOL_INDEX } from '../tool/tool-index.ts';
import { agentDecider } from '../trust/agent-decider.ts';

/** A tool that a promotion names as the one that leaves for the new one. */
export interface LeavingTool {
  readonly tool: string;
  readonly digest: Digest;
  readonly message: string;
}

interface Promotion {
  readonly agent: StoredAgent;
  readonly policy: StoredPolicy;
  readonly tool: Pick<RegisteredTool, 'artifact' | 'digest'>;
}

/** Whether a tool leaves for the new one, because the agent has exactly its maximum. Pure. */
export function makesPlace(promotion: Promotion, inNamespace: readonly StoredTool[]): boolean {
  const { agent, policy } = promotion;
  if (promotionRules(policy.spec).whenFull === 'Refuse') return false;
  const lost = (agent.status?.deactivatedTools ?? []).filter(isDeactivated).length;
  if (lost >= MAX_DEACTIVATED_TOOLS) return false;
  const { agentTools } = agentDecider(agent, policy, false).forgeLimits;
  const held = inNamespace.filter((tool) => isHeld(tool, promotion)).length;
  return held === agentTools && replaceable(promotion, inNamespace).length > 0;
}

/** The tool that the fewest messages used. Undefined when none leaves. Throws TEMPER_BUS_*. */
export async function toolThatLeaves(
  { tools, store }: { tools: Cache<StoredTool>; store: Pick<PromotionStore, 'messageUses'> },
  promotion: Promotion,
): Promise<LeavingTool | undefined> {
  const { metadata } = promotion.agent;
  const inNamespace = tools.byIndex(TOOL_INDEX.namespace, metadata.namespace);
  if (!makesPlace(promotion, inNamespace)) return undefined;
  const uses = await store.messageUses(metadata.uid);
  const used = replaceable(promotion, inNamespace).map(({ metadata: { name: object }, facts }) => ({
    tool: { object, facts },
    uses: uses.get(facts.digest) ?? { rootMessages: 0 },
  }));
  const leaving = leastUseful(used);
  if (leaving === undefined) return undefined;
  const { tool, digest } = leaving.tool.facts;
  return { tool, digest, message: `${describeLeaving(leaving)} when "${promotion.tool.artifact.name}" was promoted` };
}

/** Of tier Agent, in service for this agent, and not the promoted one itself. */
function isHeld({ facts, metadata, status }: StoredTool, { agent, tool }: Promotion): boolean {
  const isOwn = metadata.ownerReferences?.some(({ uid }) => uid === agent.metadata.uid) === true;
  return isOwn && facts.tier === 'Agent' && status?.active === true && facts.digest !== tool.digest;
}

/** No tool in service calls it in its steps, and neither does the new one. */
function replaceable(promotion: Promotion, inNamespace: readonly StoredTool[]): StoredTool[] {
  const { steps = [] } = promotion.tool.artifact.implementation;
  const served = inNamespace.filter(({ status }) => status?.active === true);
  const called = new Set<string | undefined>([
    ...steps.map(({ tool }) => splitReference(tool).digest),
    ...served.flatMap(({ facts }) => facts.steps.map(({ digest }) => digest)),
  ]);
  return served.filter((tool) => isHeld(tool, promotion) && !called.has(tool.facts.digest));
}
