import { suggestName } from '../../lib/suggest.ts';
import type { Finding, PatternRules, ValidPart } from '../findings.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';
import type { AnyResource } from '../v1alpha1/resources.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { GRANT_CHECKS } from './grants.ts';
import { quoted } from './shared.ts';

/** An object of the set, without its invalid values. */
export interface SetMember {
  kind: AnyResource['kind'];
  namespace: string;
  name: string;
  /** `file:line`, for messages about two objects. */
  location: string;
  spec: unknown;
}

export interface SetFinding<M> extends Finding {
  member: M;
}

/** Checks the rules between the objects of a set of manifests. */
export function checkManifestSet<M extends SetMember>(members: readonly M[], patterns: PatternRules): SetFinding<M>[] {
  const policies = policiesByNamespace(members);
  const agents = agentsOf(members, policies);
  return [
    ...duplicates(members),
    ...policiesExist(agents),
    ...grantsWithinPolicies(agents, patterns),
    ...agentQuotas(agents),
  ];
}

function duplicates<M extends SetMember>(members: readonly M[]): SetFinding<M>[] {
  const first = new Map<string, M>();
  return members.flatMap((member): SetFinding<M>[] => {
    const key = `${member.kind} ${member.namespace} ${member.name}`;
    const earlier = first.get(key);
    if (earlier === undefined) {
      first.set(key, member);
      return [];
    }
    const message = `${member.kind} ${quoted(member.name)} in namespace ${quoted(member.namespace)} is already defined at ${earlier.location}`;
    return [
      { member, path: ['metadata', 'name'], rule: 'duplicate-object', message, fix: 'keep one of them, or rename it' },
    ];
  });
}

/** Policies by namespace and name. Of two policies with the same name, the first one applies. */
export type Policies = ReadonlyMap<string, ReadonlyMap<string, ValidPart<TrustPolicySpec>>>;

export function policiesByNamespace(members: readonly SetMember[]): Policies {
  const found = new Map<string, Map<string, ValidPart<TrustPolicySpec>>>();
  for (const { kind, namespace, name, spec } of members) {
    if (kind !== 'TrustPolicy') continue;
    const here = found.get(namespace) ?? new Map<string, ValidPart<TrustPolicySpec>>();
    if (!here.has(name)) here.set(name, spec as ValidPart<TrustPolicySpec>);
    found.set(namespace, here);
  }
  return found;
}

/** An agent with its policy from the set. */
interface AgentMember<M> {
  member: M;
  spec: ValidPart<AgentSpec>;
  policyName: string | undefined;
  policy: ValidPart<TrustPolicySpec> | undefined;
  /** The policies in its namespace; empty when the set contains none. */
  known: string[];
}

function agentsOf<M extends SetMember>(members: readonly M[], policies: Policies): AgentMember<M>[] {
  return members.flatMap((member): AgentMember<M>[] => {
    if (member.kind !== 'Agent') return [];
    const spec = member.spec as ValidPart<AgentSpec>;
    const here = policies.get(member.namespace);
    const policyName = spec.trustPolicyRef?.name;
    const policy = policyName === undefined ? undefined : here?.get(policyName);
    return [{ member, spec, policyName, policy, known: here === undefined ? [] : [...here.keys()] }];
  });
}

/** Only where the set contains policies of the same namespace; otherwise the policy may already be in the cluster. */
function policiesExist<M extends SetMember>(agents: readonly AgentMember<M>[]): SetFinding<M>[] {
  return agents.flatMap(({ member, policyName, policy, known }): SetFinding<M>[] => {
    if (policyName === undefined || policy !== undefined || known.length === 0) return [];
    const near = suggestName(policyName, known);
    const given = known.slice(0, 10).join(', ');
    const fix =
      near === undefined
        ? `create it or change spec.trustPolicyRef; this set contains: ${given}`
        : `did you mean "${near}"?`;
    const message = `TrustPolicy ${quoted(policyName)} does not exist in namespace ${quoted(member.namespace)}`;
    return [{ member, path: ['spec', 'trustPolicyRef', 'name'], rule: 'reference', message, fix }];
  });
}

function grantsWithinPolicies<M>(agents: readonly AgentMember<M>[], patterns: PatternRules): SetFinding<M>[] {
  return agents.flatMap(({ member, spec, policyName, policy }) => {
    if (policy === undefined || policyName === undefined) return [];
    const pairing = { agent: spec, policy, policyName, patterns };
    return GRANT_CHECKS.flatMap((check) => check(pairing)).map((finding) => ({ ...finding, member }));
  });
}

function agentQuotas<M extends SetMember>(agents: readonly AgentMember<M>[]): SetFinding<M>[] {
  const counts = new Map<string, number>();
  return agents.flatMap(({ member, policyName, policy }): SetFinding<M>[] => {
    const limit = policy?.quotas?.agents;
    if (policyName === undefined || limit === undefined) return [];
    const key = `${member.namespace} ${policyName}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count <= limit) return [];
    const message = `this is agent ${count} under TrustPolicy ${quoted(policyName)}, which allows ${limit}`;
    const fix = 'remove one or raise spec.quotas.agents';
    return [{ member, path: ['spec', 'trustPolicyRef', 'name'], rule: 'agent-quota', message, fix }];
  });
}
