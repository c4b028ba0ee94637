import { isSameModelName } from '../names.ts';
import type { FieldPath, Finding, PatternRules, RuleName, ValidPart } from '../findings.ts';
import { describeNotInForce, fieldsNotInForce, segmentsOf } from '../not-in-force.ts';
import { GRANTABLE_CATEGORIES, LEVEL_CATEGORIES, type ToolCategoryName } from '../v1alpha1/actions.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';
import type { CapabilitySpec } from '../v1alpha1/capability.ts';
import type { EmergentToolSpec } from '../v1alpha1/emergenttool.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { constrainedGrants } from './agent/constraints.ts';
import { shellFindings } from './agent/shell-grants.ts';
import { toolNameFindings } from './agent/tool-names.ts';
import { type Policies, type SetFinding, type SetMember, policiesByNamespace } from './set.ts';
import { itemsOf, present, quoted } from './shared.ts';

/** What is valid in a set of manifests, and has no effect or not the effect that its author expects. */
export function manifestWarnings<M extends SetMember>(
  members: readonly M[],
  patterns: PatternRules,
  tools?: readonly string[],
): SetFinding<M>[] {
  const policies = policiesByNamespace(members);
  const known = tools && new Set([...tools, ...members.flatMap(toolsOf)]);
  return members.flatMap((member) =>
    [
      ...notInForceFindings(member),
      ...grantFindings(member, patterns),
      ...digestFindings(member),
      ...(member.kind === 'Agent' ? agentFindings(member.spec as ValidPart<AgentSpec>, known) : []),
      ...judgeFindings(member, policies),
      ...levelFindings(member),
    ].map((finding) => ({ ...finding, member })),
  );
}

function agentFindings(spec: ValidPart<AgentSpec>, known: ReadonlySet<string> | undefined): Finding[] {
  return [...shellFindings(spec), ...constrainedGrants(spec), ...(known ? toolNameFindings(spec, known) : [])];
}

/** The names of the tools that an object of the set defines. */
function toolsOf({ kind, spec }: SetMember): string[] {
  if (kind === 'EmergentTool') return present([(spec as ValidPart<EmergentToolSpec>).artifact?.name]);
  return kind === 'Capability' ? present([(spec as ValidPart<CapabilitySpec>).tool?.name]) : [];
}

/** The tools that use a grant. Without one of them in `grants.tools` the grant has no effect. */
export const TOOLS_OF_GRANTS = {
  'memory.read': ['memory_get', 'memory_search', 'memory_list'],
  'memory.write': ['memory_set', 'memory_delete'],
  messages: ['agent_send', 'agent_message'],
  spawn: ['agent_spawn'],
  kill: ['agent_kill'],
  schedules: ['schedule_create'],
  'events.publish': ['event_publish'],
  'events.subscribe': ['event_subscribe'],
  shell: ['shell_exec'],
  environment: ['shell_exec'],
} as const;

function grantFindings({ kind, spec }: SetMember, patterns: PatternRules): Finding[] {
  if (kind !== 'Agent') return [];
  const { grants = {}, prompt } = spec as ValidPart<AgentSpec>;
  const isInContext = (prompt?.context?.memory ?? []).length > 0;
  const granted = (grants.tools ?? []).filter((tool) => tool !== undefined);
  const { memory, messages, spawn, kill, events, schedules = 0 } = grants;
  const lists: Record<keyof typeof TOOLS_OF_GRANTS, readonly unknown[] | undefined> = {
    'memory.read': memory?.read,
    'memory.write': memory?.write,
    messages,
    spawn,
    kill,
    schedules: schedules > 0 ? [schedules] : [],
    'events.publish': events?.publish,
    'events.subscribe': events?.subscribe,
    shell: grants.shell,
    environment: grants.environment,
  };
  return Object.entries(TOOLS_OF_GRANTS).flatMap(([field, tools]): Finding[] => {
    const isUsed =
      (field === 'memory.read' && isInContext) || tools.some((tool) => patterns.covers(granted, tool, 'tool'));
    const isStated = (lists[field as keyof typeof lists] ?? []).length > 0;
    if (!isStated || isUsed) return [];
    return [
      {
        path: ['spec', 'grants', ...field.split('.')],
        rule: 'grant-without-tool',
        message: `spec.grants.${field} has no effect: spec.grants.tools grants no tool that uses it`,
        fix: `add ${tools.join(' or ')} to spec.grants.tools, or remove the grant`,
      },
    ];
  });
}

/** Not the fields for clusters alone: their manifests are right, and `temper run` names them itself. */
function notInForceFindings({ kind, spec }: SetMember): Finding[] {
  return fieldsNotInForce(kind, spec)
    .filter(({ where }) => where !== 'run')
    .map((entry) => ({
      path: segmentsOf(entry.field),
      rule: 'not-in-force',
      message: describeNotInForce(entry),
      fix: 'remove it, or keep it for a later version',
    }));
}

/** With `temper run`, the user has accepted the tool; on a cluster nothing but the digest says which tool is meant. */
function digestFindings({ kind, spec }: SetMember): Finding[] {
  if (kind !== 'Capability') return [];
  const mcp = (spec as ValidPart<CapabilitySpec>).backend?.mcp;
  if (mcp === undefined || mcp.digest !== undefined) return [];
  return [
    {
      path: ['spec', 'backend', 'mcp'],
      rule: 'mcp-digest',
      message: 'no agent of a cluster has the tool: spec.backend.mcp.digest is missing',
      fix: 'set it to the digest that temper mcp manifest prints, or keep the Capability for temper run',
    },
  ];
}

/** Categories of a custom level that neither its base nor a grant opens: a custom level never allows more than its base. */
function levelFindings({ kind, spec }: SetMember): Finding[] {
  if (kind !== 'TrustPolicy') return [];
  return [...itemsOf((spec as ValidPart<TrustPolicySpec>).levels, ['spec', 'levels'])].flatMap(
    ([{ base, categories }, path]) => (base === undefined ? [] : unopenedCategories(base, categories ?? [], path)),
  );
}

function unopenedCategories(
  base: keyof typeof LEVEL_CATEGORIES,
  categories: readonly (ToolCategoryName | undefined)[],
  path: FieldPath,
): Finding[] {
  const opened: readonly ToolCategoryName[] = LEVEL_CATEGORIES[base];
  return categories.flatMap((category, index): Finding[] => {
    if (category === undefined || opened.includes(category) || GRANTABLE_CATEGORIES.has(category)) return [];
    const levels = Object.entries(LEVEL_CATEGORIES).filter(([, open]) =>
      (open as readonly string[]).includes(category),
    );
    return [
      {
        path: [...path, 'categories', index],
        rule: 'level-category',
        message: `category ${quoted(category)} has no effect: the base level ${quoted(base)} does not open it, and a custom level never allows more than its base`,
        fix: `remove it, use base ${levels.map(([name]) => name).join(' or ')}, or name the tools in spec.tools.allow`,
      },
    ];
  });
}

/** An agent that may forge, under a policy of the set that accepts none of its tools. */
function judgeFindings({ kind, namespace, spec }: SetMember, policies: Policies): Finding[] {
  if (kind !== 'Agent') return [];
  const agent = spec as ValidPart<AgentSpec>;
  const policyName = agent.trustPolicyRef?.name;
  const policy = policyName === undefined ? undefined : policies.get(namespace)?.get(policyName);
  if (policyName === undefined || policy === undefined || agent.forge?.enabled !== true) return [];
  const problem = judgeProblem(agent, policy);
  if (problem === undefined) return [];
  const [rule, message, fix]: [RuleName, string, string] =
    problem.reason === 'JudgeMissing'
      ? ['judge-missing', 'has no judge', 'set spec.models.judge of the policy']
      : [
          'judge-is-author',
          `has the judge ${quoted(problem.judge)}, which is a model of the agent`,
          'name another judge, or set spec.models.judgeMayBeAuthor of the policy to true',
        ];
  return [
    {
      path: ['spec', 'forge', 'enabled'],
      rule,
      message: `every tool that the agent forges is refused: TrustPolicy ${quoted(policyName)} ${message}`,
      fix,
    },
  ];
}

export type JudgeProblem = { reason: 'JudgeMissing' } | { reason: 'JudgeIsAuthor'; judge: string };

/**
 * Why the policy accepts no tool that the agent forges; undefined when it may accept one. Compares what `resolve` gives for the names of
 * models; absent, the names as written: manifests do not say which model an alias stands for, the gateway and `temper run` know it.
 */
export function judgeProblem(
  agent: ValidPart<AgentSpec>,
  policy: ValidPart<TrustPolicySpec>,
  resolve: (name: string) => string = (name) => name,
): JudgeProblem | undefined {
  const { judge, judgeMayBeAuthor } = policy.models ?? {};
  if (judge === undefined) return { reason: 'JudgeMissing' };
  if (judgeMayBeAuthor === true) return undefined;
  const { primary, routing, fallbacks = [] } = agent.model ?? {};
  const { simple, medium, complex } = routing ?? {};
  const own = [primary, simple, medium, complex, ...fallbacks];
  const isOwn = own.some((model) => model !== undefined && isSameModelName(resolve(model), resolve(judge)));
  return isOwn ? { reason: 'JudgeIsAuthor', judge } : undefined;
}
