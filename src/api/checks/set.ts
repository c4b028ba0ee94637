import { closestName } from '../../lib/closest.ts';
import type { Finding, PatternRules, Sound } from '../findings.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';
import type { AnyResource } from '../v1alpha1/resources.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { GRANT_CHECKS } from './grants.ts';
import { quoted } from './shared.ts';

/** An object of the set as far as it is sound. */
export interface Member {
  kind: AnyResource['kind'];
  namespace: string;
  name: string;
  /** `file:line`, for messages about two objects. */
  place: string;
  spec: unknown;
}

export interface SetFinding<M> extends Finding {
  member: M;
}

/** What objects must keep between each other. */
export function checkSet<M extends Member>(members: readonly M[], patterns: PatternRules): SetFinding<M>[] {
  return [
    ...duplicates(members),
    ...policiesExist(members),
    ...grantsWithinPolicies(members, patterns),
    ...agentQuotas(members),
  ];
}

function duplicates<M extends Member>(members: readonly M[]): SetFinding<M>[] {
  const first = new Map<string, M>();
  return members.flatMap((member): SetFinding<M>[] => {
    const key = `${member.kind} ${member.namespace} ${member.name}`;
    const earlier = first.get(key);
    if (earlier === undefined) {
      first.set(key, member);
      return [];
    }
    const message = `${member.kind} ${quoted(member.name)} of namespace ${quoted(member.namespace)} is already given at ${earlier.place}`;
    return [
      { member, path: ['metadata', 'name'], rule: 'duplicate-object', message, fix: 'keep one of them, or rename it' },
    ];
  });
}

interface PolicyMember {
  name: string;
  namespace: string;
  spec: Sound<TrustPolicySpec>;
}

function policiesOf(members: readonly Member[], namespace: string): PolicyMember[] {
  return members
    .filter((member) => member.kind === 'TrustPolicy' && member.namespace === namespace)
    .map(({ name, spec }) => ({ name, namespace, spec: spec as Sound<TrustPolicySpec> }));
}

function agentsOf<M extends Member>(members: readonly M[]): { member: M; spec: Sound<AgentSpec> }[] {
  return members
    .filter(({ kind }) => kind === 'Agent')
    .map((member) => ({ member, spec: member.spec as Sound<AgentSpec> }));
}

/** Only where the set brings policies of that namespace itself; elsewhere they may be in the cluster already. */
function policiesExist<M extends Member>(members: readonly M[]): SetFinding<M>[] {
  return agentsOf(members).flatMap(({ member, spec }): SetFinding<M>[] => {
    const wanted = spec.trustPolicyRef?.name;
    const known = policiesOf(members, member.namespace).map(({ name }) => name);
    if (wanted === undefined || known.length === 0 || known.includes(wanted)) return [];
    const near = closestName(wanted, known);
    return [
      {
        member,
        path: ['spec', 'trustPolicyRef', 'name'],
        rule: 'reference',
        message: `TrustPolicy ${quoted(wanted)} does not exist in namespace ${quoted(member.namespace)}`,
        fix:
          near === undefined
            ? `create it or change spec.trustPolicyRef; given here: ${known.join(', ')}`
            : `did you mean "${near}"?`,
      },
    ];
  });
}

function grantsWithinPolicies<M extends Member>(members: readonly M[], patterns: PatternRules): SetFinding<M>[] {
  return agentsOf(members).flatMap(({ member, spec }) => {
    const policy = policiesOf(members, member.namespace).find(({ name }) => name === spec.trustPolicyRef?.name);
    if (policy === undefined) return [];
    const pairing = { agent: spec, policy: policy.spec, policyName: policy.name, patterns };
    return GRANT_CHECKS.flatMap((check) => check(pairing)).map((finding) => ({ ...finding, member }));
  });
}

function agentQuotas<M extends Member>(members: readonly M[]): SetFinding<M>[] {
  const counts = new Map<string, number>();
  return agentsOf(members).flatMap(({ member, spec }): SetFinding<M>[] => {
    const policy = policiesOf(members, member.namespace).find(({ name }) => name === spec.trustPolicyRef?.name);
    const limit = policy?.spec.quotas?.agents;
    if (policy === undefined || limit === undefined) return [];
    const key = `${policy.namespace} ${policy.name}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count <= limit) return [];
    const message = `this is agent ${count} of TrustPolicy ${quoted(policy.name)}, which allows ${limit}`;
    return [
      {
        member,
        path: ['spec', 'trustPolicyRef', 'name'],
        rule: 'agent-quota',
        message,
        fix: 'remove one or raise spec.quotas.agents',
      },
    ];
  });
}
