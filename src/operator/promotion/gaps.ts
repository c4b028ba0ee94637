import { deactivationOf } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import { panelProblem } from '../../tempering/judge/panel.ts';
import { promotionRules, useGaps } from '../../tempering/promotion/promotion-rules.ts';
import { recordingGaps } from '../../tempering/promotion/recording-rules.ts';
import type { RegisteredTool, ToolStatistics } from '../../tempering/types.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { makesPlace } from '../hygiene/leaving-tool.ts';
import { agentDecider } from '../trust/agent-decider.ts';

/** Why agent and policy permit no promotion of a tool now. Pure. */
export function policyGaps(
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  tool: { name: string; tainted: boolean },
): string[] {
  if (policy === undefined) return [`TrustPolicy "${agent.spec.trustPolicyRef.name}" does not exist; create it`];
  const gaps: string[] = [];
  const decision = agentDecider(agent, policy, tool.tainted).decide({
    kind: 'Promote',
    tool: tool.name,
    tier: 'Agent',
  });
  if (decision.effect === 'Deny') gaps.push(decision.reason);
  return gaps;
}

/** What the agent and its namespace have already. */
interface Others {
  readonly inNamespace: readonly StoredTool[];
  readonly agent: StoredAgent;
  readonly agentTools: number;
}

/** What a session tool lacks for tier Agent. Pure. */
export function toolGaps(
  { tool, statistics }: { tool: RegisteredTool; statistics: ToolStatistics },
  policy: StoredPolicy,
  others: Others,
): string[] {
  const reviewers = panelProblem(policy.spec.models?.reviewers ?? [], tool.authorModel);
  const rules = promotionRules(policy.spec);
  return [
    ...useGaps(tool, statistics, rules),
    ...recordingGaps(statistics, 'Agent', rules),
    ...(reviewers === undefined ? [] : [reviewers]),
    ...sourceGaps(tool, others.agent, rules.requireHuman),
    ...placeGaps(tool, { ...others, policy }),
  ];
}

/** An approver must read what he approves, and a source that a session stores is not withheld any more. */
function sourceGaps({ artifact, sourceWithheld }: RegisteredTool, agent: StoredAgent, requireHuman: boolean): string[] {
  if (sourceWithheld)
    return requireHuman
      ? [
          'promotion.toAgent.requireHuman of the policy asks a user, who cannot read the source that spec.forge.persistSource of the agent withholds; change one of the two and forge the tool again',
        ]
      : [];
  const isStored = artifact.implementation.source !== undefined && agent.spec.forge?.persistSource === false;
  return isStored ? ['it was forged before spec.forge.persistSource of the agent became false; forge it again'] : [];
}

const OUT_OF_SERVICE: ReadonlySet<string> = new Set(['Demoted', 'Revoked']);

/** A digest that was taken out of service stays out, no tool shadows another, and an agent has a limited number of tools. */
function placeGaps(
  tool: RegisteredTool,
  { inNamespace, agent, agentTools, policy }: Others & { policy: StoredPolicy },
): string[] {
  const { artifact, digest } = tool;
  const gaps: string[] = [];
  if (deactivationOf(agent.status?.deactivatedTools, digest) !== undefined)
    gaps.push(`it is deactivated for the agent; verify it again with kubectl temper reactivate ${artifact.name}`);
  const removed = inNamespace.find((other) => other.facts.digest === digest && isOutOfService(other));
  if (removed !== undefined) {
    gaps.push(
      `EmergentTool "${removed.metadata.name}" with this digest was taken out of service; forge a corrected version`,
    );
  }
  const visible = inNamespace.filter(
    (other) => other.status?.active === true && isVisibleTo(other, agent.metadata.uid),
  );
  const holder = visible.find(({ facts }) => facts.tool === artifact.name && facts.digest !== digest);
  if (holder !== undefined) {
    const name = holder.metadata.name;
    gaps.push(`EmergentTool "${name}" has the name "${artifact.name}" at tier ${holder.facts.tier}; demote it first`);
  }
  const held = visible.filter(({ facts }) => facts.tier === 'Agent').length;
  if (held >= agentTools && !makesPlace({ agent, policy, tool }, inNamespace)) {
    gaps.push(
      `the agent has ${held} of ${agentTools} tools; demote some, or raise spec.forge.limits.agentTools of the policy`,
    );
  }
  return gaps;
}

function isOutOfService({ status }: StoredTool): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status: holds, reason }) => type === 'Active' && holds === 'False' && OUT_OF_SERVICE.has(reason),
  );
}

/** Whether the agent sees the tool when it is in service. */
export function isVisibleTo({ metadata, facts }: Pick<StoredTool, 'metadata' | 'facts'>, agentUid: string): boolean {
  return facts.tier === 'Shared' || (metadata.ownerReferences ?? []).some(({ uid }) => uid === agentUid);
}
