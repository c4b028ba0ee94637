import { TOOL_CATEGORIES, type ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import type { CapabilitySpec } from '../../api/v1alpha1/capability.ts';
import { isJsonObject, type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { Members } from './values.ts';

/** A CAPABILITY.yaml as the spec of a Capability. */
export interface CapabilityDocument {
  name: string;
  spec: CapabilitySpec;
  /** The text that the document itself has. */
  content?: string;
}

type CapabilityType = CapabilitySpec['type'];
type Edge = NonNullable<CapabilitySpec['edges']>[number];

const TYPES: Readonly<Record<string, CapabilityType>> = {
  tool: 'Tool',
  skill: 'Skill',
  extension: 'Extension',
  channel: 'Channel',
  voice: 'Voice',
  productivity: 'Productivity',
};

const EDGES: Readonly<Record<string, Edge['type']>> = {
  DEPENDS_ON: 'DependsOn',
  COMPOSED_WITH: 'ComposedWith',
  SAME_CATEGORY: 'SameCategory',
  TAGGED_WITH: 'TaggedWith',
};

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const CONNECTION = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Undefined after an error that leaves no object. */
export function readCapabilityDocument(members: Members): CapabilityDocument | undefined {
  const [id, kind, name, description] = (['id', 'kind', 'name', 'description'] as const).map((key) => {
    const text = members.text(key, key === 'description' ? 2_048 : 160);
    if (text === undefined && !members.has(key)) members.error(key, 'is missing', `add ${key}`);
    return text;
  });
  const type = typeOf(members, kind);
  const rest = optionalFields(members);
  const content = members.text('fullContent', 65_536);
  const tool = toolOf(members, { type, name, category: rest.category });
  members.reportRest();
  if (type === undefined || name === undefined || description === undefined || kind === undefined) return undefined;
  if (!NAME.test(name)) members.error('name', 'has to be lower-case letters, digits and dashes');
  if (id !== `${kind}:${name}`) members.error('id', `has to be ${printable(`${kind}:${name}`, 160)}`);
  const spec: CapabilitySpec = { type, description, ...rest, ...(tool === undefined ? {} : { tool }) };
  return { name, spec, ...(content === undefined ? {} : { content }) };
}

function typeOf(members: Members, kind: string | undefined): CapabilityType | undefined {
  if (kind === undefined) return undefined;
  const type = Object.hasOwn(TYPES, kind) ? TYPES[kind] : undefined;
  if (type === undefined) {
    const forged = kind === 'emergent-tool' ? '; forged tools are imported with temper tool import' : '';
    members.error('kind', `has to be one of ${Object.keys(TYPES).join(', ')}${forged}`);
  }
  return type;
}

function optionalFields(members: Members): Omit<CapabilitySpec, 'type' | 'description' | 'tool'> {
  const displayName = members.text('displayName', 128);
  const category = members.text('category', 64);
  const hasSideEffects = members.boolean('hasSideEffects');
  const lists = {
    tags: members.texts('tags', 20, 64),
    requiredTools: members.texts('requiredTools', 20, 63),
    requiredSecrets: members.texts('requiredSecrets', 10, 63).flatMap((text) => connectionName(members, text)),
    examples: members.list('examples', 20).map(exampleText),
    edges: members.list('edges', 50).flatMap((edge) => edgeOf(members, edge)),
  };
  for (const [key, reason] of [
    ['available', 'is computed from requiredSecrets and requiredTools'],
    ['sourceRef', 'has no effect: the object of the cluster is the reference'],
  ] as const)
    if (members.has(key)) members.warn(key, reason, 'remove it');
  return {
    ...(displayName === undefined ? {} : { displayName }),
    ...(category === undefined ? {} : { category }),
    ...(hasSideEffects === undefined ? {} : { hasSideEffects }),
    ...Object.fromEntries(Object.entries(lists).filter(([, items]) => items.length > 0)),
  };
}

/** The name of an environment variable becomes that of a connection, which has the secret. */
function connectionName(members: Members, text: string): string[] {
  const name = text.toLowerCase().replaceAll('_', '-');
  if (!CONNECTION.test(name)) {
    members.error('requiredSecrets', `has the item "${printable(text, 63)}", which is not the name of a connection`);
    return [];
  }
  if (name !== text)
    members.warn('requiredSecrets', `${printable(text, 63)} is read as connection ${name}`, `write ${name}`);
  return [name];
}

function exampleText(example: Json): string {
  return (typeof example === 'string' ? example : JSON.stringify(example)).slice(0, 1_024) || '-';
}

function edgeOf(members: Members, edge: Json): Edge[] {
  const [type, target, weight] = [member(edge, 'type'), member(edge, 'target'), member(edge, 'weight') ?? 1];
  const known = typeof type === 'string' ? edgeType(type) : undefined;
  const value = Number(weight);
  const others = isJsonObject(edge)
    ? Object.keys(edge).filter((key) => !['type', 'target', 'weight'].includes(key))
    : [];
  if (known === undefined || typeof target !== 'string' || !(value >= 0 && value <= 1) || others.length > 0) {
    const form = `{type: ${Object.keys(EDGES).join(' | ')}, target: kind:name, weight: 0 to 1}`;
    members.error('edges', `has the item ${printable(JSON.stringify(edge), 120)}, which is not ${form}`);
    return [];
  }
  return [{ type: known, target, weight: value.toFixed(2) }];
}

/** In the words of CAPABILITY.yaml, or those of a Capability. */
function edgeType(type: string): Edge['type'] | undefined {
  return Object.hasOwn(EDGES, type) ? EDGES[type] : Object.values(EDGES).find((one) => one === type);
}

function toolOf(
  members: Members,
  {
    type,
    name,
    category,
  }: { type: CapabilityType | undefined; name: string | undefined; category: string | undefined },
): CapabilitySpec['tool'] {
  const [key] = ['schema', 'fullSchema'].filter((one) => members.has(one));
  const schema = key === undefined ? undefined : members.value(key);
  if (type !== 'Tool') {
    if (key !== undefined) members.warn(key, 'has no effect: only a tool has arguments', 'remove it');
    return undefined;
  }
  if (name === undefined) return undefined;
  if (!isJsonObject(schema ?? {})) members.error(key ?? 'schema', 'has to be a JSON Schema of type object');
  const known = TOOL_CATEGORIES.find((one): one is ToolCategoryName => one === category) ?? 'other';
  return { name, category: known, inputSchema: isJsonObject(schema) ? schema : { type: 'object' } };
}
