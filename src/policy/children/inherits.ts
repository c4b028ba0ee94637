import { isDeepStrictEqual } from 'node:util';
import { modelNames } from '../../api/names.ts';
import { MAX_HOOKS } from '../../api/limits/hooks.ts';
import { MAX_TOOL_SETTINGS } from '../../api/limits/tool-settings.ts';
import { DEFAULT_PRIORITY, PRIORITIES } from '../../api/limits/priority.ts';
import { TOOL_PROFILES, AGENT_MODES } from '../../api/v1alpha1/agent/tool-profiles.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { DIMENSIONS, DIMENSION_NAMES, MAX_ACTION_ENTRIES } from '../../api/limits/constraints.ts';
import { BoundedPatternRules } from '../patterns/pattern-rules.ts';
import { AUTONOMY_PRESETS } from '../tables.ts';
import { grantRefusals } from './grants.ts';
import { inheritedSpec } from './inherited-spec.ts';
import { limitRefusals } from './limits.ts';
import { quotedList, refusal, type Refusal } from './refusal.ts';
import { unruledFields } from './ruled-fields.ts';

interface Pair {
  child: AgentSpec;
  parent: AgentSpec;
  patterns: BoundedPatternRules;
}

type FieldRule = (pair: Pair) => Refusal[];

const free: FieldRule = () => [];

/**
 * What a child may state, by field. A new field of an Agent needs an entry, and an entry in `ruled-fields.ts`: it is `free` only when it gives
 * the child nothing.
 */
const RULES: Readonly<Record<keyof AgentSpec, FieldRule>> = {
  description: free,
  prompt: contextOfParent,
  invocation: free,
  disclosure: free,
  returns: free,
  idle: free,
  suspend: free,
  trustPolicyRef: samePolicy,
  model: modelsOfParent,
  grants: ({ child, parent, patterns }) => grantRefusals(child.grants, parent.grants, patterns),
  denyTools: ({ child }) => within('spec.denyTools', child.denyTools?.length ?? 0, 100),
  arguments: ({ child }) => within('spec.arguments', child.arguments?.length ?? 0, 50),
  toolSettings: ({ child }) => within('spec.toolSettings', child.toolSettings?.length ?? 0, MAX_TOOL_SETTINGS),
  toolProfile: profileOfParent,
  mode: ({ child, parent }) => ordered('spec.mode', AGENT_MODES, child.mode ?? 'Full', parent.mode ?? 'Full'),
  autonomy: autonomyOfParent,
  constraints: constraintsOfParent,
  forge: forgeOfParent,
  hooks: ({ child }) => within('spec.hooks', child.hooks?.length ?? 0, MAX_HOOKS),
  // `limitRefusals` compares them.
  limits: free,
  quotas: free,
  sandbox: sandboxOfParent,
  schedule: scheduleOfParent,
  priority: ({ child, parent }) =>
    ordered('spec.priority', PRIORITIES, child.priority ?? DEFAULT_PRIORITY, parent.priority ?? DEFAULT_PRIORITY),
  // Only users decide who calls an agent from elsewhere.
  a2a: ({ child }) =>
    child.a2a === undefined ? [] : [refusal('spec.a2a', 'of a child', 'no child that is available')],
  children: ({ child, parent }) => [
    ...(child.children?.inherit === true && parent.children?.inherit !== true
      ? [refusal('spec.children.inherit', 'true', 'no right to write manifests')]
      : []),
    // Only users decide that an agent is a template.
    ...(child.children?.template === true ? [refusal('spec.children.template', 'true', 'no templates')] : []),
  ],
};

/**
 * Everything that the child asks for and the parent does not have; an empty list admits the child. Restrictions that the child leaves
 * out are those of the parent (`inheritedSpec`), so they are no refusal. The child's manifest may be hostile: all comparisons of one
 * call share one budget, and what exceeds it counts as outside. Never throws.
 */
export function inherits(child: AgentSpec, parent: AgentSpec): Refusal[] {
  const pair = { child: inheritedSpec(child, parent), parent, patterns: new BoundedPatternRules() };
  const rules = new Map<string, FieldRule>(Object.entries(RULES));
  const stated = Object.entries(pair.child).filter(([, value]) => value !== undefined);
  const refused = stated.flatMap(([field]) => rules.get(field)?.(pair) ?? []);
  return [...refused, ...limitRefusals(pair.child, parent), ...unruledFields(pair.child, parent)];
}

/** A child reads the files that its parent has in its context: their text reaches the model without a grant for a tool. */
function contextOfParent({ child, parent }: Pair): Refusal[] {
  const has = parent.prompt.context?.files ?? [];
  const outside = (child.prompt.context?.files ?? []).filter((path) => !has.includes(path));
  return outside.map((path) => refusal('spec.prompt.context.files', `"${path}"`, quotedList(has)));
}

function samePolicy({ child, parent }: Pair): Refusal[] {
  const [asked, has] = [child.trustPolicyRef.name, parent.trustPolicyRef.name];
  return asked === has ? [] : [refusal('spec.trustPolicyRef.name', `"${asked}"`, `"${has}"`)];
}

/** A child calls only models that its parent calls: the first choice, those by complexity and the fallbacks, in any order. */
function modelsOfParent({ child, parent }: Pair): Refusal[] {
  const has = modelNames(parent.model);
  const used: [string, string][] = [
    ['spec.model.primary', child.model.primary],
    ...Object.entries(child.model.routing ?? {}).map(([key, name]): [string, string] => [
      `spec.model.routing.${key}`,
      name,
    ]),
    ...(child.model.fallbacks ?? []).map((name, index): [string, string] => [`spec.model.fallbacks[${index}]`, name]),
  ];
  const outside = used.filter(([, name]) => !has.includes(name));
  const [asked, own] = [child.model.agent, parent.model.agent];
  return [
    ...outside.map(([field, name]) => refusal(field, `"${name}"`, quotedList(has))),
    ...(asked === undefined || asked === own ? [] : [refusal('spec.model.agent', `"${asked}"`, own ?? 'none')]),
  ];
}

/** A run starts a chain of messages of its own, which the chain of the parent would not limit. */
function scheduleOfParent({ child, parent }: Pair): Refusal[] {
  const { mode: asked = 'Reactive', ...others } = child.schedule ?? {};
  const isIdle = asked === 'Reactive' && Object.keys(others).length === 0;
  if (isIdle || isDeepStrictEqual(child.schedule, parent.schedule)) return [];
  return [refusal('spec.schedule', asked, parent.schedule?.mode ?? 'Reactive')];
}

function profileOfParent({ child, parent, patterns }: Pair): Refusal[] {
  if (parent.toolProfile === undefined || child.toolProfile === undefined) return [];
  if (parent.toolProfile === child.toolProfile) return [];
  const ceiling: readonly string[] = TOOL_PROFILES[parent.toolProfile] ?? [];
  const asked: readonly string[] = TOOL_PROFILES[child.toolProfile] ?? ['*'];
  return asked.every((tool) => patterns.covers(ceiling, tool, 'tool'))
    ? []
    : [refusal('spec.toolProfile', child.toolProfile, parent.toolProfile)];
}

/** Without a preset of the parent the policy decides for both. */
function autonomyOfParent({ child, parent }: Pair): Refusal[] {
  if (parent.autonomy === undefined || child.autonomy === undefined) return [];
  return ordered('spec.autonomy', [...AUTONOMY_PRESETS].reverse(), child.autonomy, parent.autonomy);
}

/** A dimension that the parent leaves open is as the policy has it, for both. */
function constraintsOfParent({ child, parent }: Pair): Refusal[] {
  const { requireApproval = [], ...asked } = child.constraints ?? {};
  const looser = DIMENSION_NAMES.flatMap((name) => {
    const [value, has] = [asked[name], parent.constraints?.[name]];
    if (value === undefined || has === undefined) return [];
    return ordered(`spec.constraints.${name}`, DIMENSIONS[name], value, has);
  });
  return [...looser, ...within('spec.constraints.requireApproval', requireApproval.length, MAX_ACTION_ENTRIES)];
}

/** Each list starts with the tightest value. A value that is not in the list exceeds every other. */
function ordered(field: string, order: readonly string[], asked: string, has: string): Refusal[] {
  const rank = order.indexOf(asked);
  return rank >= 0 && rank <= order.indexOf(has) ? [] : [refusal(field, asked, has)];
}

function forgeOfParent({ child, parent }: Pair): Refusal[] {
  const { enabled = false, modes = ['Compose'], apis = [], persistSource = true } = child.forge ?? {};
  const has = parent.forge ?? {};
  if (!enabled) return [];
  if (has.enabled !== true) return [refusal('spec.forge.enabled', 'true', 'no right to forge')];
  const outside = (key: string, asked: readonly string[], allowed: readonly string[]): Refusal[] =>
    asked
      .filter((item) => !allowed.includes(item))
      .map((item) => refusal(`spec.forge.${key}`, `"${item}"`, quotedList(allowed)));
  const isExposed = persistSource && has.persistSource === false;
  return [
    ...outside('modes', modes, has.modes ?? ['Compose']),
    ...outside('apis', apis, has.apis ?? []),
    ...(isExposed ? [refusal('spec.forge.persistSource', 'true', 'withheld sources')] : []),
  ];
}

/** The class decides about the isolation; ConfigMaps are readable only where a user mounted them. */
function sandboxOfParent({ child, parent }: Pair): Refusal[] {
  const [asked, has] = [child.sandbox ?? {}, parent.sandbox ?? {}];
  const mounted = (has.workspace?.files ?? []).map(({ configMap }) => configMap.name);
  const files = asked.workspace?.files ?? [];
  const outside = files.filter(({ configMap }) => !mounted.includes(configMap.name));
  return [
    ...(asked.class === has.class ? [] : [refusal('spec.sandbox.class', `"${asked.class}"`, has.class ?? 'no class')]),
    ...outside.map(({ configMap }) =>
      refusal('spec.sandbox.workspace.files', `ConfigMap "${configMap.name}"`, quotedList(mounted)),
    ),
  ];
}

function within(field: string, entries: number, maximum: number): Refusal[] {
  return entries <= maximum
    ? []
    : [refusal(field, `with the ${entries} entries of child and parent`, `at most ${maximum} entries`)];
}
