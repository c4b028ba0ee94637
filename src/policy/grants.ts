import { GRANT_CHECKS } from '../api/checks/grants.ts';
import { dottedPath } from '../api/findings.ts';
import type { PatternKind } from '../api/findings.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { BoundedPatternRules, PATTERN_RULES } from './patterns/pattern-rules.ts';

/** A grant that exceeds the policy, or an invalid pattern. */
export interface GrantProblem {
  /** Path of the field: `spec.grants.network[0]`. */
  field: string;
  pattern: string;
  /** What is wrong, and what to do. */
  message: string;
}

/**
 * The grants of an agent that its policy does not cover. Patterns are compared as languages: `*.example.com` is within
 * `**.example.com`. Invalid patterns of the agent and the policy are reported first, alone. Returns an empty list when there is no
 * problem. Never throws.
 */
export function grantsWithinPolicy(agent: AgentSpec, policy: TrustPolicySpec): GrantProblem[] {
  const policyName = agent.trustPolicyRef.name;
  const invalid = [
    ...invalidPatterns(agentFields(agent), ''),
    ...invalidPatterns(policyFields(policy), ` of policy "${policyName}"`),
  ];
  if (invalid.length > 0) return invalid;
  const patterns = new BoundedPatternRules();
  const findings = GRANT_CHECKS.flatMap((check) => check({ agent, policy, policyName, patterns }));
  return findings.map(({ path, message, fix }) => ({
    field: dottedPath(path),
    pattern: textAt(agent, path),
    message: `${message}; ${fix}`,
  }));
}

/** The string that a finding points at. The path starts at the object, with `spec`. */
function textAt(agent: AgentSpec, path: readonly (string | number)[]): string {
  let value: unknown = agent;
  for (const key of path.slice(1)) {
    value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
  }
  return typeof value === 'string' ? value : '';
}

type Field = readonly [field: string, patterns: readonly string[] | undefined, kind: PatternKind];

/** Every list of grants with the kind of its patterns, in manifest order. */
function grantFields(grants: AgentSpec['grants'] = {}): Field[] {
  return [
    ['spec.grants.tools', grants.tools, 'tool'],
    ['spec.grants.network', grants.network, 'host'],
    ['spec.grants.memory.read', grants.memory?.read, 'key'],
    ['spec.grants.memory.write', grants.memory?.write, 'key'],
    ['spec.grants.messages', grants.messages, 'name'],
    ['spec.grants.spawn', grants.spawn, 'name'],
    ['spec.grants.kill', grants.kill, 'name'],
    ['spec.grants.shell', grants.shell, 'name'],
    ['spec.grants.events.publish', grants.events?.publish, 'event'],
    ['spec.grants.events.subscribe', grants.events?.subscribe, 'event'],
    ['spec.grants.environment', grants.environment, 'name'],
  ];
}

function agentFields(agent: AgentSpec): Field[] {
  const pins = (agent.arguments ?? []).flatMap((pin, index): Field[] => [
    [`spec.arguments[${index}].tool`, [pin.tool], 'tool'],
    [`spec.arguments[${index}].allow`, pin.allow, 'path'],
  ]);
  return [...grantFields(agent.grants), ['spec.denyTools', agent.denyTools, 'tool'], ...pins];
}

function policyFields(policy: TrustPolicySpec): Field[] {
  const actions = (policy.actions ?? []).map(
    (action, index): Field => [`spec.actions[${index}].tools`, action.tools, 'tool'],
  );
  return [
    ...actions,
    ['spec.egress.allow', policy.egress?.allow, 'host'],
    ['spec.tools.allow', policy.tools?.allow, 'tool'],
    ['spec.tools.deny', policy.tools?.deny, 'tool'],
    ['spec.models.allow', policy.models?.allow, 'model'],
    ['spec.forge.domains', policy.forge?.domains, 'host'],
    ['spec.children.templates', policy.children?.templates, 'name'],
    ['spec.tainted.network', policy.tainted?.network, 'host'],
  ];
}

function invalidPatterns(fields: readonly Field[], owner: string): GrantProblem[] {
  return fields.flatMap(([field, patterns, kind]) =>
    (patterns ?? []).flatMap((pattern) => {
      const why = PATTERN_RULES.patternError(pattern, kind);
      const message = `${field}${owner} "${pattern}" is not a pattern: ${why}; see the pattern reference`;
      return why === undefined ? [] : [{ field, pattern, message }];
    }),
  );
}
