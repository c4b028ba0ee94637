import type { Prepared } from './prepare.ts';
import type { PatternSet } from './pattern-set.ts';
import { matches } from './patterns.ts';
import { allowed, deny, notApplicable, passed } from './rules.ts';
import type { RequestOf, Rule, Violation } from './rules.ts';
import { taintedRule } from './rules-common.ts';

type NetworkRequest = RequestOf<'Network'>;

/** A host is reached where the agent is granted it and the policy lets it out and the level has a network. */
export function networkRules(prepared: Prepared): Rule<NetworkRequest>[] {
  const { network, egress, level, taintedNetwork, snapshot } = prepared;
  const egressOf = `egress.allow of TrustPolicy "${snapshot.policy.name}"`;
  return [
    taintedRule<NetworkRequest>(prepared, 'network'),
    {
      id: 'grant.network',
      check: (request) =>
        network.has(target(request))
          ? undefined
          : deny(
              `${target(request)} is not granted to agent "${snapshot.agent.name}": grants.network allows ${network.describe()}.`,
            ),
      note: (request) => allowed(`granted by grants.network "${network.find(target(request))}"`),
    },
    {
      id: 'policy.egress',
      check: (request) =>
        egress.has(target(request))
          ? undefined
          : deny(`${target(request)} is not let out: ${egressOf} is ${egress.describe()}.`),
      note: (request) => allowed(`let out by egress.allow "${egress.find(target(request))}"`),
    },
    {
      id: 'constraint.network',
      check: (request) => levelViolation(prepared, request),
      note: () => passed(`level ${level.name} has network ${level.constraints.network}`),
    },
    {
      id: 'tainted.hosts',
      check: (request) =>
        !snapshot.tainted || taintedNetwork === undefined || taintedNetwork.has(target(request))
          ? undefined
          : deny(
              `${target(request)} is out of reach while the session holds untrusted content: tainted.network is ${taintedNetwork.describe()}.`,
            ),
      note: () =>
        snapshot.tainted && taintedNetwork !== undefined
          ? passed(`tainted.network is ${taintedNetwork.describe()}`)
          : notApplicable(snapshot.tainted ? 'tainted.network is not set' : 'the session is not tainted'),
    },
  ];
}

/** The first of the rules that keeps the host out of reach. */
export function hostViolation(
  rules: readonly Rule<NetworkRequest>[],
  host: string,
  port: number,
): Violation | undefined {
  const request: NetworkRequest = { kind: 'Network', host, port };
  for (const rule of rules) {
    const violation = rule.check(request);
    if (violation !== undefined) return { ...violation, rule: violation.rule ?? rule.id };
  }
  return undefined;
}

/** An allowlist that says "everything" is none: at `Allowlist` one of the two lists must name the host's own domain. */
function levelViolation({ level, network, egress }: Prepared, request: NetworkRequest): Violation | undefined {
  const mode = level.constraints.network;
  if (mode === 'Open') return undefined;
  if (mode === 'None') return deny(`Level ${level.name} has no network; level restricted has an allowlist.`);
  if (namesDomain(network, target(request)) || namesDomain(egress, target(request))) return undefined;
  return deny(
    `Level ${level.name} reaches listed hosts only, and ${target(request)} is covered by "*" alone; name its domain in grants.network or egress.allow.`,
  );
}

function namesDomain(set: PatternSet, host: string): boolean {
  return set.patterns.some(
    (pattern) => pattern.segments.slice(1).some((label) => label !== '**') && matches(pattern, host),
  );
}

function target({ host, port }: NetworkRequest): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
}
