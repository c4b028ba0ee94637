import type { AgentSpec } from '../../api/v1alpha1/agent.ts';

/**
 * The spec of a child with the restrictions of its parent: what the parent denies, pins and limits holds for the child, and what the
 * child leaves open is as it is for the parent. It adds no grant. Idempotent. `inherits` says whether the result is within the parent.
 */
export function inheritedSpec(child: AgentSpec, parent: AgentSpec): AgentSpec {
  return {
    ...child,
    ...defaults(child, parent, ['autonomy', 'mode', 'toolProfile', 'idle', 'priority']),
    ...lists(child, parent),
    model: { ...child.model, ...defaults(child.model, parent.model, ['maxOutputTokens']) },
    ...section('constraints', constraints(child.constraints, parent.constraints)),
    ...section('limits', { ...parent.limits, ...stated(child.limits) }),
    ...section('quotas', { ...parent.quotas, ...stated(child.quotas) }),
    ...section('sandbox', sandbox(child.sandbox, parent.sandbox)),
    ...section('forge', { ...child.forge, ...withheldSource(child.forge, parent.forge) }),
  };
}

/** The members of the parent that the child does not set. */
function defaults<T extends object>(child: T, parent: T, keys: readonly (keyof T)[]): Partial<T> {
  const open = keys.filter((key) => child[key] === undefined && parent[key] !== undefined);
  return Object.fromEntries(open.map((key) => [key, parent[key]])) as unknown as Partial<T>;
}

function stated<T extends object>(value: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([, member]) => member !== undefined)) as Partial<T>;
}

function section(key: keyof AgentSpec, value: object): Partial<AgentSpec> {
  return Object.keys(value).length === 0 ? {} : { [key]: value };
}

function lists(child: AgentSpec, parent: AgentSpec): Partial<AgentSpec> {
  return {
    ...list('denyTools', child.denyTools, parent.denyTools),
    ...list('arguments', child.arguments, parent.arguments),
    ...hooks(child, parent),
  };
}

/** The hooks of the parent come first: what they refuse to the parent, they refuse to the child. */
function hooks({ hooks: own = [] }: AgentSpec, { hooks: inherited = [] }: AgentSpec): Partial<AgentSpec> {
  if (inherited.length === 0) return {};
  const known = new Set(inherited.map((hook) => JSON.stringify(hook)));
  return { hooks: [...inherited, ...own.filter((hook) => !known.has(JSON.stringify(hook)))] };
}

function list<T>(key: keyof AgentSpec, child: readonly T[] = [], parent: readonly T[] = []): Partial<AgentSpec> {
  if (parent.length === 0) return {};
  const known = new Set(child.map((item) => JSON.stringify(item)));
  return { [key]: [...child, ...parent.filter((item) => !known.has(JSON.stringify(item)))] };
}

type ChildConstraints = NonNullable<AgentSpec['constraints']>;

function constraints(child: ChildConstraints = {}, parent: ChildConstraints = {}): ChildConstraints {
  const approvals = [...new Set([...(child.requireApproval ?? []), ...(parent.requireApproval ?? [])])];
  const isListed = child.requireApproval !== undefined || approvals.length > 0;
  return { ...parent, ...stated(child), ...(isListed ? { requireApproval: approvals } : {}) };
}

type Sandbox = AgentSpec['sandbox'];

function sandbox(child: NonNullable<Sandbox> = {}, parent: NonNullable<Sandbox> = {}): NonNullable<Sandbox> {
  const resources = { ...parent.resources, ...stated(child.resources) };
  const size = child.workspace?.size ?? parent.workspace?.size;
  const workspace = { ...child.workspace, ...(size === undefined ? {} : { size }) };
  return {
    ...child,
    ...(child.class === undefined && parent.class !== undefined ? { class: parent.class } : {}),
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
    ...(Object.keys(workspace).length === 0 ? {} : { workspace }),
  };
}

/** A child may use what it read from its parent in a tool, so its sources are withheld too. */
function withheldSource(child: AgentSpec['forge'], parent: AgentSpec['forge']): AgentSpec['forge'] {
  const isOpen = child !== undefined && child.persistSource === undefined;
  return isOpen && parent?.persistSource === false ? { persistSource: false } : {};
}
