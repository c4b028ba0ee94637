import { deactivationOf } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { Clock } from '../../lib/clock.ts';
import { INDEX } from '../agent/observe.ts';
import type { RerunTimes } from '../reruns/rerun-plan.ts';
import type { ValidationCache } from '../agent/validation-cache.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { AdmissionAge } from './admission-age.ts';
import { hasReportedAnswers, type ObservedTool, wasVerified } from './plan.ts';
import { policyDenial, promotionDenial, sharingRules } from './policy-limits.ts';
import { promotionRules, type PromotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { parseDuration } from '../../api/quantities.ts';
import type { ObservedSharing } from '../sharing/sharing.ts';
import type { StoredTool } from './stored-tool.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from './tool-index.ts';

export interface ToolObserverDeps extends ToolCaches {
  readonly clock: Clock;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly validation: ValidationCache;
  readonly admissionAge: () => AdmissionAge;
  /** The newest known version of a cached tool. */
  readonly latest: (tool: StoredTool) => StoredTool;
}

/** What no cache has. */
export type ReadFacts = Pick<ObservedTool, 'operator' | 'sourceLost' | 'wasReported'>;

/** What decides about a request for tier Shared, and who it is about. */
export interface ObservedRequester extends ObservedSharing {
  readonly agent: StoredAgent;
  readonly policy: StoredPolicy | undefined;
  /** The agents that have the digest in service at tier Agent. */
  readonly holders: readonly StoredAgent[];
}

const BUILT_IN = builtInNames();

/** All reads of a reconcile of a tool. Reads caches only. */
export class ToolObserver {
  readonly #deps: ToolObserverDeps;

  constructor(deps: ToolObserverDeps) {
    this.#deps = deps;
  }

  activity(tool: StoredTool, { operator, sourceLost, wasReported }: ReadFacts): ObservedTool {
    const { clock, admissionAge } = this.#deps;
    const owner = this.#ownerOf(tool);
    return {
      tool,
      now: clock.now(),
      approvals: this.#approvalsOf(tool),
      admission: admissionAge(),
      operator,
      sourceLost,
      wasReported,
      contributors: this.contributors(tool),
      nameHolder: this.#nameHolder(tool, (other) => isSameScope(tool, other)),
      inactiveStep: this.inactiveStep(tool),
      sharedAs: this.#shared(tool).find(isInService)?.metadata.name,
      ownerExists: owner !== undefined,
      deactivation: deactivationOf(owner?.status?.deactivatedTools, tool.facts.digest),
      policyDenial: owner === undefined ? undefined : policyDenial(tool, owner, this.#policyOf(owner)),
      foundations: this.#foundations(tool),
    };
  }

  /** Undefined when the agent of the tool does not exist. */
  sharing(tool: StoredTool): ObservedRequester | undefined {
    const { clock, requests } = this.#deps;
    const agent = this.#ownerOf(tool);
    if (agent === undefined) return undefined;
    const policy = this.#policyOf(agent);
    const holders = this.withDigest(tool).filter((other) => other.facts.tier === 'Agent' && isInService(other));
    const { namespace } = tool.metadata;
    const key = inNamespace(namespace, tool.facts.digest);
    const ofAgent = requests.byIndex(TOOL_INDEX.agent, inNamespace(namespace, agent.metadata.uid));
    return {
      agent,
      policy,
      tool,
      now: clock.now(),
      shared: this.#shared(tool)[0],
      holders: holders.map((other) => this.#ownerOf(other)).filter((owner) => owner !== undefined),
      agents: [...new Set(holders.flatMap(({ facts }) => facts.agent ?? []))].sort(),
      isOldest: holders.every((other) => other.metadata.uid === tool.metadata.uid || isOlder(tool, other)),
      rules: sharingRules(policy),
      requests: requests
        .byIndex(TOOL_INDEX.digest, key)
        .filter(({ spec }) => spec.subject.promotion?.tier === 'Shared'),
      approvals: this.#approvalsOf(tool),
      pendingOfAgent: ofAgent.filter(({ status }) => status?.decision === undefined).length,
      nameHolder: this.#nameHolder({ ...tool, status: {} }, () => true),
      inactiveStep: this.inactiveStep(tool),
      denial: promotionDenial(tool, agent, policy),
    };
  }

  /** What a run of the tests in a verifier pod needs. A Shared tool has no policy of its own: the policy of the agents with its digest counts. */
  rerun(tool: StoredTool): RerunTimes & { rules: PromotionRules; agentUids: string[] } {
    const own =
      tool.facts.tier === 'Agent' ? [tool] : this.withDigest(tool).filter(({ facts }) => facts.tier === 'Agent');
    const owners = own.map((other) => this.#ownerOf(other)).filter((agent) => agent !== undefined);
    const [first] = owners;
    return {
      rules: promotionRules((first === undefined ? undefined : this.#policyOf(first))?.spec ?? {}),
      agentUids: owners.map(({ metadata }) => metadata.uid),
      reverifyEveryMs: this.#reverifyEvery(tool),
      ...this.#deactivations(tool),
    };
  }

  /** Of the agents that lost the tool. */
  #deactivations(tool: StoredTool): Pick<RerunTimes, 'losses' | 'requests'> {
    const { namespace } = tool.metadata;
    const { digest, tier, agent } = tool.facts;
    const entries = this.#deps.agents
      .byIndex(INDEX.deactivated, inNamespace(namespace, digest))
      .filter(({ metadata }) => tier === 'Shared' || metadata.name === agent)
      .flatMap(({ status }) => deactivationOf(status?.deactivatedTools, digest) ?? []);
    return {
      losses: entries.filter(({ cause }) => cause !== 'LeastUseful').map(({ since }) => since),
      requests: entries.flatMap(({ requestedAt }) => requestedAt ?? []),
    };
  }

  /** The last Shared version of the tool with another digest. */
  replaced({ metadata, facts }: StoredTool): StoredTool | undefined {
    return this.#deps.tools
      .byIndex(TOOL_INDEX.name, inNamespace(metadata.namespace, facts.tool))
      .filter((other) => other.facts.tier === 'Shared' && other.facts.digest !== facts.digest)
      .sort((one, other) => (isOlder(one, other) ? 1 : -1))[0];
  }

  /** All objects of the namespace with the digest, in their newest known version. */
  withDigest({ metadata, facts }: StoredTool): StoredTool[] {
    const { tools, latest } = this.#deps;
    return tools.byIndex(TOOL_INDEX.digest, inNamespace(metadata.namespace, facts.digest)).map(latest);
  }

  contributors(tool: StoredTool): string[] {
    return [...new Set(this.withDigest(tool).flatMap(({ facts }) => facts.contributors))].sort();
  }

  /** A Shared tool calls Shared and built-in tools only. */
  inactiveStep({ metadata, facts }: StoredTool): string | undefined {
    const { tools, latest } = this.#deps;
    const isCallable = ({ name, digest }: StoredTool['facts']['steps'][number]): boolean => {
      if (digest === undefined) return BUILT_IN.has(name);
      const found = tools.byIndex(TOOL_INDEX.digest, inNamespace(metadata.namespace, digest)).map(latest);
      return found.some((other) => other.facts.tier === 'Shared' && other.facts.tool === name && isInService(other));
    };
    return facts.steps.find((step) => !isCallable(step))?.name;
  }

  /** Tier Agent: of the policy of its agent. Tier Shared: the shortest interval of the policies of the namespace. */
  #reverifyEvery(tool: StoredTool): number | undefined {
    const owner = this.#ownerOf(tool);
    const policies =
      tool.facts.tier === 'Agent'
        ? [owner === undefined ? undefined : this.#policyOf(owner)]
        : this.#deps.policies.list().filter(({ metadata }) => metadata.namespace === tool.metadata.namespace);
    const intervals = policies
      .filter((policy) => policy !== undefined && this.#deps.validation.specError(policy) === undefined)
      .flatMap((policy) => policy?.spec.decay?.reverifyEvery ?? []);
    return intervals.length === 0 ? undefined : Math.min(...intervals.map(parseDuration));
  }

  #foundations(tool: StoredTool): StoredTool[] {
    if (tool.facts.tier !== 'Shared') return [];
    const since = tool.metadata.creationTimestamp;
    return this.withDigest(tool).filter(
      (other) =>
        other.facts.tier === 'Agent' &&
        wasVerified(other) &&
        (other.metadata.creationTimestamp <= since || !hasReportedAnswers(other)),
    );
  }

  #approvalsOf({ metadata, facts }: StoredTool) {
    const key = inNamespace(metadata.namespace, facts.digest);
    return this.#deps.approvals.byIndex(TOOL_INDEX.digest, key).map(({ record }) => record);
  }

  #shared(tool: StoredTool): StoredTool[] {
    const found = this.withDigest(tool).filter(
      ({ facts, metadata }) => facts.tier === 'Shared' && metadata.deletionTimestamp === undefined,
    );
    return found.sort((one, other) => Number(isInService(other)) - Number(isInService(one)));
  }

  /** Of two tools in service with one name the older keeps it; a tool that is not in service waits for the other. */
  #nameHolder(tool: StoredTool, sharesView: (other: StoredTool) => boolean): string | undefined {
    const { metadata, facts } = tool;
    if (BUILT_IN.has(facts.tool)) return 'a built-in tool';
    const holder = this.#deps.tools
      .byIndex(TOOL_INDEX.name, inNamespace(metadata.namespace, facts.tool))
      .map(this.#deps.latest)
      .filter((other) => other.facts.digest !== facts.digest && isInService(other) && sharesView(other))
      .find((other) => !isInService(tool) || isOlder(other, tool));
    return holder === undefined ? undefined : `EmergentTool "${holder.metadata.name}"`;
  }

  /** The agent of the label, when the owner reference confirms it. */
  #ownerOf({ metadata, facts: { agent } }: StoredTool): StoredAgent | undefined {
    if (agent === undefined) return undefined;
    const found = this.#deps.agents.get(metadata.namespace, agent);
    const isOwner = metadata.ownerReferences?.some(({ kind, uid }) => kind === 'Agent' && uid === found?.metadata.uid);
    return isOwner === true ? found : undefined;
  }

  #policyOf(agent: StoredAgent): StoredPolicy | undefined {
    const { policies, validation } = this.#deps;
    const policy = policies.get(agent.metadata.namespace, agent.spec.trustPolicyRef.name);
    return policy === undefined || validation.specError(policy) !== undefined ? undefined : policy;
  }
}

export function isInService({ status, metadata }: StoredTool): boolean {
  return status?.active === true && metadata.deletionTimestamp === undefined;
}

function isOlder({ metadata: one }: StoredTool, { metadata: other }: StoredTool): boolean {
  return `${one.creationTimestamp} ${one.name}` < `${other.creationTimestamp} ${other.name}`;
}

/** Would an agent see both at the same tier? A tool of its own comes before a Shared one. */
function isSameScope({ facts: one }: StoredTool, { facts: other }: StoredTool): boolean {
  return one.tier === other.tier && (one.tier === 'Shared' || one.agent === other.agent);
}
