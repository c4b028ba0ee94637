import { dottedPath } from '../findings.ts';
import type { Finding, FieldPath, PatternKind, PatternRules, ValidPart } from '../findings.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { DEFAULT_PRIORITY, PRIORITIES } from '../limits/priority.ts';
import { customApprovalsExist, looserConstraints } from './agent/constraints.ts';
import { ceilingBase } from './levels.ts';
import { itemsOf, present, quoted } from './shared.ts';

/** An agent and the policy that it refers to, both from the same set of manifests. */
interface Pairing {
  agent: ValidPart<AgentSpec>;
  policy: ValidPart<TrustPolicySpec>;
  policyName: string;
  patterns: PatternRules;
}

type GrantCheck = (pairing: Pairing) => Finding[];

/** Grants of an agent that exceed its policy. These checks are static; the policy decision at run time happens at each use. */
export const GRANT_CHECKS: readonly GrantCheck[] = [
  networkWithinEgress,
  toolsNotDenied,
  modelsAllowed,
  forgeWithinCeiling,
  autonomyNotLoosened,
  constraintsNotLoosened,
  ({ agent, policy }) => customApprovalsExist(agent, policy),
  priorityWithinPolicy,
];

function exceeds(path: FieldPath, what: string, why: string, policyName: string): Finding {
  return {
    path,
    rule: 'grant-exceeds-policy',
    message: `${dottedPath(path)
      .replace(/^spec\./, '')
      .replace(/\[\d+\]$/, '')} ${what} exceeds policy "${policyName}" (${why})`,
    fix: 'narrow the grant or extend the policy',
  };
}

function beyond(
  pairing: Pairing,
  kind: PatternKind,
  ceiling: readonly string[],
  list: Iterable<[string, FieldPath]>,
  field: string,
) {
  const why = ceiling.length === 0 ? `${field} is empty` : `${field} is ${ceiling.map(quoted).join(', ')}`;
  return [...list].flatMap(([pattern, path]): Finding[] => {
    if (pairing.patterns.patternError(pattern, kind) !== undefined) return [];
    if (pairing.patterns.covers(ceiling, pattern, kind)) return [];
    return [exceeds(path, quoted(pattern), why, pairing.policyName)];
  });
}

function wellFormed(pairing: Pairing, kind: PatternKind, list: readonly (string | undefined)[] | undefined): string[] {
  return present(list).filter((pattern) => pairing.patterns.patternError(pattern, kind) === undefined);
}

function networkWithinEgress(pairing: Pairing): Finding[] {
  const ceiling = wellFormed(pairing, 'host', pairing.policy.egress?.allow);
  const grants = itemsOf(pairing.agent.grants?.network, ['spec', 'grants', 'network']);
  return beyond(pairing, 'host', ceiling, grants, 'egress.allow');
}

function toolsNotDenied(pairing: Pairing): Finding[] {
  const denied = wellFormed(pairing, 'tool', pairing.policy.tools?.deny);
  return [...itemsOf(pairing.agent.grants?.tools, ['spec', 'grants', 'tools'])].flatMap(([tool, path]): Finding[] => {
    if (pairing.patterns.patternError(tool, 'tool') !== undefined || !pairing.patterns.covers(denied, tool, 'tool'))
      return [];
    return [exceeds(path, quoted(tool), 'tools.deny denies it completely', pairing.policyName)];
  });
}

/** Without models.allow the policy allows all models. */
function modelsAllowed(pairing: Pairing): Finding[] {
  const { model } = pairing.agent;
  if (pairing.policy.models?.allow === undefined) return [];
  const ceiling = wellFormed(pairing, 'model', pairing.policy.models.allow);
  const used: [string, FieldPath][] = [...itemsOf(model?.fallbacks, ['spec', 'model', 'fallbacks'])];
  for (const key of ['simple', 'medium', 'complex'] as const) {
    const name = model?.routing?.[key];
    if (name !== undefined) used.push([name, ['spec', 'model', 'routing', key]]);
  }
  if (model?.primary !== undefined) used.unshift([model.primary, ['spec', 'model', 'primary']]);
  const known = used.filter(([name]) => name !== 'default/default');
  return beyond(pairing, 'model', ceiling, known, 'models.allow');
}

function forgeWithinCeiling(pairing: Pairing): Finding[] {
  const { agent, policy, policyName } = pairing;
  const allowed = present(policy.forge?.apis);
  const why = allowed.length === 0 ? 'forge.apis is empty' : `forge.apis is ${allowed.join(', ')}`;
  const findings = [...itemsOf(agent.forge?.apis, ['spec', 'forge', 'apis'])].flatMap(([api, path]): Finding[] =>
    allowed.includes(api) ? [] : [exceeds(path, quoted(api), why, policyName)],
  );
  if (ceilingBase(policy) !== 'sandboxed') return findings;
  for (const [mode, path] of itemsOf(agent.forge?.modes, ['spec', 'forge', 'modes'])) {
    if (mode === 'Sandbox')
      findings.push(exceeds(path, quoted(mode), 'its ceiling sandboxed allows only Compose', policyName));
  }
  return findings;
}

const AUTONOMY = ['Full', 'Semi', 'Supervised', 'Locked'] as const;

function autonomyNotLoosened({ agent, policy, policyName }: Pairing): Finding[] {
  const requested = agent.autonomy;
  const given = policy.autonomy ?? 'Semi';
  if (requested === undefined || AUTONOMY.indexOf(requested) >= AUTONOMY.indexOf(given)) return [];
  return [
    exceeds(['spec', 'autonomy'], quoted(requested), `autonomy is ${given}; an agent may only be stricter`, policyName),
  ];
}

function constraintsNotLoosened({ agent, policy, policyName }: Pairing): Finding[] {
  return looserConstraints(agent, policy).map(({ path, value, why }) =>
    exceeds(path, quoted(value), `${why}; an agent may only be stricter`, policyName),
  );
}

/** Without maxPriority an agent is at most Normal, so no agent comes first because its manifest says so. */
function priorityWithinPolicy({ agent: { priority }, policy, policyName }: Pairing): Finding[] {
  const { maxPriority = DEFAULT_PRIORITY } = policy;
  if (priority === undefined || PRIORITIES.indexOf(priority) <= PRIORITIES.indexOf(maxPriority)) return [];
  return [exceeds(['spec', 'priority'], quoted(priority), `maxPriority is ${maxPriority}`, policyName)];
}
