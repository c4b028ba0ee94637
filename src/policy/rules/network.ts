import { describeLimit, levelHint } from '../constraints/constrained-level.ts';
import type { PreparedPolicy } from '../prepare.ts';
import { toNetworkInput } from './rule-inputs.ts';
import type { NetworkRuleInput } from './rule-inputs.ts';
import type { Pattern } from '../patterns/pattern.ts';
import { allowed, deny, passed } from './rule.ts';
import type { Rule, RuleViolation } from './rule.ts';
import { taintedListNote, taintedRule } from './common.ts';
import { privateConnectionRule } from '../private-data/rules.ts';

/** A connection needs a grant of the agent, egress in the policy, and a level that allows the network. */
export function networkRules(prepared: PreparedPolicy): Rule<NetworkRuleInput>[] {
  const { network, egress, taintedNetwork, snapshot } = prepared;
  const egressOf = `egress.allow of TrustPolicy "${snapshot.policy.name}"`;
  return [
    taintedRule<NetworkRuleInput>(prepared, 'network'),
    {
      id: 'grant.network',
      check: (request) =>
        network.covers(request.subject)
          ? undefined
          : deny(
              `${request.target} is not granted to agent "${snapshot.agent.name}": grants.network allows ${network.describe()}.`,
            ),
      explain: (request) => allowed(`granted by grants.network "${network.find(request.target)}"`),
    },
    {
      id: 'policy.egress',
      check: (request) =>
        egress.covers(request.subject)
          ? undefined
          : deny(`${request.target} is not an allowed destination: ${egressOf} is ${egress.describe()}.`),
      explain: (request) => allowed(`allowed by egress.allow "${egress.find(request.target)}"`),
    },
    levelRule(prepared),
    {
      id: 'tainted.hosts',
      check: (request) =>
        !snapshot.tainted || taintedNetwork === undefined || taintedNetwork.covers(request.subject)
          ? undefined
          : deny(
              `${request.target} is not allowed while the session contains untrusted content: tainted.network is ${taintedNetwork.describe()}.`,
            ),
      explain: () => taintedListNote(snapshot.tainted, 'tainted.network', taintedNetwork),
    },
    privateConnectionRule(prepared),
  ];
}

/** The first violation of the rules for a connection to the host. */
export function hostViolation(
  rules: readonly Rule<NetworkRuleInput>[],
  host: string,
  port: number,
): RuleViolation | undefined {
  const request = toNetworkInput({ kind: 'Network', host, port });
  for (const rule of rules) {
    const violation = rule.check(request);
    if (violation !== undefined) return { ...violation, rule: violation.rule ?? rule.id };
  }
  return undefined;
}

/** With network mode `Allowlist`, one of the two lists must name the host's domain; a list of "*" alone is not enough. */
function levelRule({ level, network, egress }: PreparedPolicy): Rule<NetworkRuleInput> {
  const mode = level.constraints.network;
  const named = [network.filter(namesDomain), egress.filter(namesDomain)];
  return {
    id: 'constraint.network',
    check: ({ subject, target }) => {
      if (mode === 'Open') return undefined;
      if (mode === 'None')
        return deny(
          `A connection to ${target} needs the network, which ${level.limits.network.by} does not allow${levelHint(level, 'network', 'level restricted allows listed hosts')}.`,
        );
      if (named.some((set) => set.covers(subject))) return undefined;
      return deny(
        `Only listed hosts are allowed by ${level.limits.network.by}, and only "*" matches ${target}; name its domain in grants.network or egress.allow.`,
      );
    },
    explain: () => passed(describeLimit(level, 'network')),
  };
}

/** The first segment of a host pattern is the port. */
function namesDomain({ segments }: Pattern): boolean {
  return segments.slice(1).some((label) => label !== '**');
}
