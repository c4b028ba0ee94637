import { isUnprintable, printable } from '../lib/printable.ts';
import { digestOf } from '../lib/canonical.ts';
import { messageOf } from '../lib/errors.ts';
import { createCategoryDecider } from './category-decider.ts';
import type { Json } from '../lib/json.ts';
import { grantedPrograms } from './rules/constraints.ts';
import { NO_FORGE, forgeLimits } from './forge-limits.ts';
import { preparePolicy } from './prepare.ts';
import type { PreparedPolicy } from './prepare.ts';
import { toNetworkInput, toToolInput } from './rules/rule-inputs.ts';
import type { ToolRuleInput } from './rules/rule-inputs.ts';
import type { RequestOf, Rule } from './rules/rule.ts';
import { fileRules, memoryRules, messageRules, modelRules, promoteRules } from './rules/access.ts';
import { modeRules, suspendRules } from './rules/common.ts';
import { killRules, spawnRules } from './rules/children.ts';
import { scheduleRules } from './rules/schedules.ts';
import { publishRules, subscribeRules } from './rules/events.ts';
import { forgeRules } from './rules/forge.ts';
import { networkRules } from './rules/network.ts';
import { toolRules } from './rules/tool.ts';
import { riskOf } from './tables.ts';
import type { Decider, Decision, ForgeLimits, PolicyRequest, PolicySnapshot, Risk, RuleTrace } from './types.ts';

/** The rule that an `Allow` decision names: it grants the request; every other rule only did not object. */
const GRANTING_RULE: Readonly<Record<PolicyRequest['kind'], string>> = {
  Tool: 'grant.tools',
  Forge: 'forge.enabled',
  Network: 'grant.network',
  File: 'constraint.files',
  Memory: 'grant.memory',
  Message: 'grant.messages',
  Spawn: 'grant.spawn',
  Kill: 'grant.kill',
  Schedule: 'grant.schedules',
  Publish: 'grant.events.publish',
  Subscribe: 'grant.events.subscribe',
  Model: 'grant.model',
  Promote: 'promotion.human',
};

/** The rules for one kind of request, in order, and the function that prepares their input once per decision. */
interface RuleChain {
  toInput: (request: PolicyRequest) => PolicyRequest;
  rules: readonly Rule<PolicyRequest>[];
}

type RuleChains = Readonly<Record<PolicyRequest['kind'], RuleChain>>;

/**
 * Compiles a snapshot once; decisions are then pure, do no I/O and never throw. For a snapshot with an invalid rule, the decider
 * denies every request with rule `policy.invalid`. A rule that throws denies the request with rule `internal`.
 */
export function createDecider(snapshot: PolicySnapshot): Decider {
  const hasCategories = Object.keys(snapshot.categoryLevels ?? {}).length > 0;
  return hasCategories ? createCategoryDecider(snapshot, compile) : compile(snapshot);
}

function compile(snapshot: PolicySnapshot): Decider {
  try {
    const prepared = preparePolicy(snapshot);
    const limits = { ...forgeLimits(prepared), policyRevision: revisionOf(snapshot) };
    const chains = chainsOf(prepared, limits);
    return {
      decide: (request) => run(chains, request),
      explain: (request) => {
        const steps: RuleTrace[] = [];
        return { ...run(chains, request, steps), trace: steps };
      },
      forgeLimits: limits,
      level: prepared.level.name,
      programs: grantedPrograms(prepared),
    };
  } catch (error) {
    return denyingDecider(snapshot, messageOf(error, 512));
  }
}

/** The same for equal specs of one policy, wherever they are stored. */
function revisionOf({ policy }: PolicySnapshot): string {
  return digestOf({ name: policy.name, spec: JSON.parse(JSON.stringify(policy.spec)) as Json });
}

function chainsOf(prepared: PreparedPolicy, limits: ForgeLimits): RuleChains {
  const common = [...suspendRules(prepared), ...modeRules(prepared)];
  // Chains are looked up by kind, so a chain only receives requests of its kind. The type system cannot express this.
  const chain = <Q extends PolicyRequest>(rules: readonly Rule<Q>[], toInput: (request: never) => Q) =>
    ({ toInput, rules: [...common, ...rules] }) as unknown as RuleChain;
  return {
    Tool: chain(toolRules(prepared, limits), (request: RequestOf<'Tool'>) => toToolInput(request, prepared.actions)),
    Network: chain(networkRules(prepared), toNetworkInput),
    Forge: chain(forgeRules(prepared), identity),
    File: chain(fileRules(prepared), identity),
    Memory: chain(memoryRules(prepared), identity),
    Message: chain(messageRules(prepared), identity),
    Spawn: chain(spawnRules(prepared), identity),
    Kill: chain(killRules(prepared), identity),
    Schedule: chain(scheduleRules(prepared), identity),
    Publish: chain(publishRules(prepared), identity),
    Subscribe: chain(subscribeRules(prepared), identity),
    Model: chain(modelRules(prepared), identity),
    Promote: chain(promoteRules(prepared), identity),
  };
}

function identity<R>(request: R): R {
  return request;
}

/** The first denial ends the chain. The first escalation is remembered, because a later rule may still deny. */
function run(chains: RuleChains, request: PolicyRequest, trace?: RuleTrace[]): Decision {
  let escalation: Decision | undefined;
  let current = 'internal';
  try {
    const { toInput, rules } = chains[request.kind];
    const input = toInput(request);
    const risk = riskOfRequest(input);
    for (const rule of rules) {
      current = rule.id;
      const violation = rule.check(input);
      if (violation === undefined) {
        if (trace !== undefined) trace.push(traceOf(rule, input));
        continue;
      }
      const decision: Decision = {
        effect: violation.effect,
        rule: violation.rule ?? rule.id,
        reason: printableReason(violation.reason),
        risk,
      };
      trace?.push({
        rule: decision.rule,
        verdict: decision.effect === 'Deny' ? 'denied' : 'escalated',
        detail: decision.reason,
      });
      if (decision.effect === 'Deny') return decision;
      escalation ??= decision;
    }
    return escalation ?? { effect: 'Allow', rule: GRANTING_RULE[input.kind], reason: allowReason(input), risk };
  } catch (error) {
    const reason = `Rule ${current} failed (${printableReason(messageOf(error, 128))}); a rule that fails denies the request.`;
    trace?.push({ rule: 'internal', verdict: 'denied', detail: reason });
    return { effect: 'Deny', rule: 'internal', reason, risk: 'high' };
  }
}

function traceOf(rule: Rule<PolicyRequest>, request: PolicyRequest): RuleTrace {
  const { verdict, detail } = rule.explain(request);
  return { rule: rule.id, verdict, detail: printableReason(detail) };
}

/** The kinds whose requests all have one risk. */
const RISKS = {
  Network: 'high',
  Spawn: 'medium',
  Kill: 'medium',
  Schedule: 'medium',
  Publish: 'low',
  Subscribe: 'low',
  Message: 'low',
  Model: 'low',
} as const satisfies Partial<Record<PolicyRequest['kind'], Risk>>;

function riskOfRequest(request: PolicyRequest): Risk {
  switch (request.kind) {
    case 'Tool':
      return 'does' in request ? (request as ToolRuleInput).does.risk : riskOf(request.action);
    case 'Promote':
      return request.tier === 'Shared' ? 'high' : 'medium';
    case 'Forge':
      return request.apis.length > 0 ? 'high' : 'medium';
    case 'File':
    case 'Memory':
      return request.access === 'read' ? 'low' : 'medium';
    default:
      return RISKS[request.kind];
  }
}

/** Includes the subject, because this sentence is stored in the audit log. */
function allowReason(request: PolicyRequest): string {
  const rule = GRANTING_RULE[request.kind];
  return `${printableReason(subjectOf(request))} is allowed by ${rule}; no other rule denies it.`;
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
    case 'Spawn':
      return childSubject(request.template);
    case 'Kill':
      return `The end of "${request.agent}"`;
    case 'Schedule':
      return 'A schedule that the agent makes';
    case 'Publish':
      return `An event "${request.subject}"`;
    case 'Subscribe':
      return `A subscription to "${request.pattern}"`;
    case 'Model':
      return `Model ${request.model}`;
    case 'Promote':
      return `Promotion of "${request.tool}" to tier ${request.tier}`;
    default:
      return request satisfies never;
  }
}

function childSubject(template: string | undefined): string {
  return template === undefined ? 'A child agent' : `A copy of "${template}"`;
}

const MAX_REASON = 1_000;

/** Escapes control characters: reasons quote names from models and other untrusted sources, and are printed to terminals. */
function printableReason(text: string): string {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || (code > 0x7e && isUnprintable(code))) return printable(text, MAX_REASON);
  }
  return text.length > MAX_REASON ? printable(text, MAX_REASON) : text;
}

function denyingDecider({ agent, policy, level }: PolicySnapshot, problem: string): Decider {
  const reason = printableReason(
    `Nothing is allowed to agent "${agent.name}" under TrustPolicy "${policy.name}" until a rule is corrected: ${problem}`,
  );
  const decision: Decision = { effect: 'Deny', rule: 'policy.invalid', reason, risk: 'high' };
  return {
    decide: () => decision,
    explain: () => ({ ...decision, trace: [{ rule: 'policy.invalid', verdict: 'denied', detail: reason }] }),
    forgeLimits: NO_FORGE,
    programs: [],
    level,
  };
}
