import { isUnprintable, printable } from '../lib/escape.ts';
import { messageOf } from '../lib/errors.ts';
import { NO_CEILINGS, forgeCeilings } from './ceilings.ts';
import { prepare } from './prepare.ts';
import type { Prepared } from './prepare.ts';
import { networkQuestion, toolQuestion } from './questions.ts';
import type { Rule } from './rules.ts';
import { fileRules, memoryRules, messageRules, modelRules, promoteRules } from './rules-access.ts';
import { suspendRules } from './rules-common.ts';
import { forgeRules } from './rules-forge.ts';
import { networkRules } from './rules-network.ts';
import { toolRules } from './rules-tool.ts';
import { riskOf } from './tables.ts';
import type { Decider, Decision, ForgeCeilings, PolicyRequest, PolicySnapshot, Risk, RuleTrace } from './types.ts';

/** The rule an allowed request owes its permission to; all the others found nothing against it. */
const GRANTING_RULE: Readonly<Record<PolicyRequest['kind'], string>> = {
  Tool: 'grant.tools',
  Forge: 'forge.enabled',
  Network: 'grant.network',
  File: 'constraint.files',
  Memory: 'grant.memory',
  Message: 'grant.messages',
  Model: 'grant.model',
  Promote: 'promotion.human',
};

/** The rules of one kind of request, in order, and what they want to know of it, read once. */
interface Chain {
  ask: (request: PolicyRequest) => PolicyRequest;
  rules: readonly Rule<PolicyRequest>[];
}

type Chains = Readonly<Record<PolicyRequest['kind'], Chain>>;

/**
 * Compiles a snapshot once; decisions are then pure, do no I/O and never throw. A snapshot with a rule that cannot be read
 * gives a decider that denies everything with rule `policy.invalid`, and a rule that crashes denies with `internal`.
 */
export function createDecider(snapshot: PolicySnapshot): Decider {
  try {
    const prepared = prepare(snapshot);
    const ceilings = forgeCeilings(prepared);
    const chains = chainsOf(prepared, ceilings);
    return {
      decide: (request) => run(chains, request),
      explain: (request) => {
        const trail: RuleTrace[] = [];
        return { ...run(chains, request, trail), trail };
      },
      ceilings,
      level: prepared.level.name,
    };
  } catch (error) {
    return denyingDecider(snapshot, messageOf(error, 512));
  }
}

function chainsOf(prepared: Prepared, ceilings: ForgeCeilings): Chains {
  const common = suspendRules(prepared);
  // A chain is only ever given requests of its own kind: it is looked up by kind, which the types cannot follow.
  const chain = <Q extends PolicyRequest>(rules: readonly Rule<Q>[], ask: (request: never) => Q) =>
    ({ ask, rules: [...common, ...rules] }) as unknown as Chain;
  return {
    Tool: chain(toolRules(prepared, ceilings), toolQuestion),
    Network: chain(networkRules(prepared), networkQuestion),
    Forge: chain(forgeRules(prepared), asIs),
    File: chain(fileRules(prepared), asIs),
    Memory: chain(memoryRules(prepared), asIs),
    Message: chain(messageRules(prepared), asIs),
    Model: chain(modelRules(prepared), asIs),
    Promote: chain(promoteRules(prepared), asIs),
  };
}

function asIs<R>(request: R): R {
  return request;
}

/** A denial ends the way at once; the first escalation is kept, since a later rule may still deny. */
function run(chains: Chains, request: PolicyRequest, trail?: RuleTrace[]): Decision {
  let waiting: Decision | undefined;
  let current = 'internal';
  try {
    const { ask, rules } = chains[request.kind];
    const question = ask(request);
    const risk = riskOfRequest(question);
    for (const rule of rules) {
      current = rule.id;
      const violation = rule.check(question);
      if (violation === undefined) {
        if (trail !== undefined) trail.push(noteOf(rule, question));
        continue;
      }
      const decision: Decision = {
        effect: violation.effect,
        rule: violation.rule ?? rule.id,
        reason: shown(violation.reason),
        risk,
      };
      trail?.push({
        rule: decision.rule,
        verdict: decision.effect === 'Deny' ? 'denied' : 'escalated',
        detail: decision.reason,
      });
      if (decision.effect === 'Deny') return decision;
      waiting ??= decision;
    }
    return waiting ?? { effect: 'Allow', rule: GRANTING_RULE[question.kind], reason: allowReason(question), risk };
  } catch (error) {
    const reason = `Rule ${current} failed (${shown(messageOf(error, 128))}), and a rule that fails denies.`;
    trail?.push({ rule: 'internal', verdict: 'denied', detail: reason });
    return { effect: 'Deny', rule: 'internal', reason, risk: 'high' };
  }
}

function noteOf(rule: Rule<PolicyRequest>, request: PolicyRequest): RuleTrace {
  const { verdict, detail } = rule.note(request);
  return { rule: rule.id, verdict, detail: shown(detail) };
}

function riskOfRequest(request: PolicyRequest): Risk {
  switch (request.kind) {
    case 'Tool':
      return riskOf(request.action);
    case 'Network':
      return 'high';
    case 'Promote':
      return request.tier === 'Shared' ? 'high' : 'medium';
    case 'Forge':
      return request.apis.length > 0 ? 'high' : 'medium';
    case 'File':
    case 'Memory':
      return request.access === 'read' ? 'low' : 'medium';
    case 'Message':
    case 'Model':
      return 'low';
    default:
      return request satisfies never;
  }
}

/** Told in one breath with what was asked, since it goes into the audit. */
function allowReason(request: PolicyRequest): string {
  const rule = GRANTING_RULE[request.kind];
  return `${shown(subjectOf(request))} is allowed by ${rule}, and no rule is against it.`;
}

function subjectOf(request: PolicyRequest): string {
  switch (request.kind) {
    case 'Tool':
      return `Tool "${request.name}"`;
    case 'Forge':
      return `Forging a ${request.mode} tool`;
    case 'Network':
      return `${request.host}:${request.port}`;
    case 'File':
      return `File ${request.access}`;
    case 'Memory':
      return `Memory ${request.access} of "${request.key}"`;
    case 'Message':
      return `A message to "${request.agent}"`;
    case 'Model':
      return `Model ${request.model}`;
    case 'Promote':
      return `Promotion of "${request.tool}" to tier ${request.tier}`;
    default:
      return request satisfies never;
  }
}

const LONGEST_REASON = 1_000;

/** Names come from models and strangers: nothing a terminal would obey gets out. */
function shown(text: string): string {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || (code > 0x7e && isUnprintable(code))) return printable(text, LONGEST_REASON);
  }
  return text.length > LONGEST_REASON ? printable(text, LONGEST_REASON) : text;
}

function denyingDecider({ agent, policy, level }: PolicySnapshot, problem: string): Decider {
  const reason = shown(
    `Nothing is allowed to agent "${agent.name}" under TrustPolicy "${policy.name}" until a rule is corrected: ${problem}`,
  );
  const decision: Decision = { effect: 'Deny', rule: 'policy.invalid', reason, risk: 'high' };
  return {
    decide: () => decision,
    explain: () => ({ ...decision, trail: [{ rule: 'policy.invalid', verdict: 'denied', detail: reason }] }),
    ceilings: NO_CEILINGS,
    level,
  };
}
