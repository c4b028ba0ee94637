import type { Prepared } from './prepare.ts';
import { networkQuestion } from './questions.ts';
import type { NetworkQuestion } from './questions.ts';
import type { Pattern } from './patterns.ts';
import { allowed, deny, notApplicable, passed } from './rules.ts';
import type { Rule, Violation } from './rules.ts';
import { taintedRule } from './rules-common.ts';

/** A connection needs a grant of the agent, egress in the policy, and a level that allows the network. */
export function networkRules(prepared: Prepared): Rule<NetworkQuestion>[] {
  const { network, egress, taintedNetwork, snapshot } = prepared;
  const egressOf = `egress.allow of TrustPolicy "${snapshot.policy.name}"`;
  return [
    taintedRule<NetworkQuestion>(prepared, 'network'),
    {
      id: 'grant.network',
      check: (request) =>
        network.covers(request.subject)
          ? undefined
          : deny(
              `${request.target} is not granted to agent "${snapshot.agent.name}": grants.network allows ${network.describe()}.`,
            ),
      note: (request) => allowed(`granted by grants.network "${network.find(request.target)}"`),
    },
    {
      id: 'policy.egress',
      check: (request) =>
        egress.covers(request.subject)
          ? undefined
          : deny(`${request.target} is not an allowed destination: ${egressOf} is ${egress.describe()}.`),
      note: (request) => allowed(`allowed by egress.allow "${egress.find(request.target)}"`),
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
      note: () =>
        snapshot.tainted && taintedNetwork !== undefined
          ? passed(`tainted.network is ${taintedNetwork.describe()}`)
          : notApplicable(snapshot.tainted ? 'tainted.network is not set' : 'the session is not tainted'),
    },
  ];
}

/** The first violation of the rules for a connection to the host. */
export function hostViolation(
  rules: readonly Rule<NetworkQuestion>[],
  host: string,
  port: number,
): Violation | undefined {
  const request = networkQuestion({ kind: 'Network', host, port });
  for (const rule of rules) {
    const violation = rule.check(request);
    if (violation !== undefined) return { ...violation, rule: violation.rule ?? rule.id };
  }
  return undefined;
}

/** With network mode `Allowlist`, one of the two lists must name the host's domain; a list of "*" alone is not enough. */
function levelRule({ level, network, egress }: Prepared): Rule<NetworkQuestion> {
  const mode = level.constraints.network;
  const named = [network.where(namesDomain), egress.where(namesDomain)];
  return {
    id: 'constraint.network',
    check: ({ subject, target }) => {
      if (mode === 'Open') return undefined;
      if (mode === 'None')
        return deny(`Level ${level.name} does not allow the network; level restricted allows listed hosts.`);
      if (named.some((set) => set.covers(subject))) return undefined;
      return deny(
        `Level ${level.name} allows only listed hosts, and only "*" matches ${target}; name its domain in grants.network or egress.allow.`,
      );
    },
    note: () => passed(`level ${level.name} has network ${mode}`),
  };
}

/** The first segment of a host pattern is the port. */
function namesDomain({ segments }: Pattern): boolean {
  return segments.slice(1).some((label) => label !== '**');
}
