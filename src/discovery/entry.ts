import { DEFAULT_ACTION } from '../api/v1alpha1/actions.ts';
import type { Capability } from '../api/v1alpha1/capability.ts';
import type { JsonObject } from '../lib/json.ts';
import type { PolicyRequest } from '../policy/types.ts';
import { toolRequest } from '../tools/authorize.ts';
import type { CapabilityLink, CapabilityTopics, ToolDescriptor } from '../tools/contract.ts';
import { parameterText, parameterTextOf } from './parameters.ts';
import { catalogueOnly, NOT_CALLABLE } from './requirements.ts';

export const CAPABILITY_KINDS = [
  'tool',
  'skill',
  'extension',
  'channel',
  'voice',
  'productivity',
  'emergent-tool',
] as const;
export type CapabilityKind = (typeof CAPABILITY_KINDS)[number];

/** The searchable and visible data of one capability. */
export interface DiscoveryEntry {
  /** `kind:name`. */
  id: string;
  kind: CapabilityKind;
  name: string;
  /** For human readers. */
  displayName?: string;
  description: string;
  category: string;
  tags: readonly string[];
  /** The names and descriptions of its parameters; absent: none. */
  parameters?: string;
  /** The policy request that decides whether the entry may be listed. Absent for entries that cannot be called: these are visible in the whole namespace. */
  request?: PolicyRequest;
  /** The owning agent; absent: the entry is visible to every agent of the namespace. */
  agent?: string;
  /** Tools that the capability needs, as a name or `name@sha256:…`. */
  requiredTools: readonly string[];
  /** Connections that the capability needs; absent: none. */
  requiredConnections?: readonly string[];
  /** Patterns for the hosts of a forged tool that uses `fetch`; absent: it does not. */
  fetchHosts?: readonly string[];
  /** Links to other capabilities. */
  links?: readonly CapabilityLink[];
  /** A short reason why the capability cannot be used, whatever the agent has; absent when it can. */
  unavailable?: string;
  /** Its words come from elsewhere: they rank it, and results withhold them. */
  imported?: true;
}

/** Stored length of a description: search reads no more, and results show less. */
const MAX_DESCRIPTION = 1_024;

/** The entry for a tool of the agent. */
export function toolEntry(tool: ToolDescriptor): DiscoveryEntry {
  const { name, description, category, forged, topics } = tool;
  const kind = forged === undefined ? 'tool' : 'emergent-tool';
  return {
    id: `${kind}:${name}`,
    kind,
    name,
    description: description.slice(0, MAX_DESCRIPTION),
    category: forged === undefined ? (topics?.category ?? category) : 'emergent',
    tags: forged === undefined ? (topics?.tags ?? []) : ['runtime-created', 'agent-forged'],
    parameters: parameterText(tool.inputSchema),
    request: toolRequest(tool),
    requiredTools: topics?.requiredTools ?? forged?.steps ?? [],
    ...fetchHostsOf(forged),
    ...(topics === undefined ? {} : { links: topics.links }),
  };
}

function fetchHostsOf(forged: ToolDescriptor['forged']): Pick<DiscoveryEntry, 'fetchHosts'> {
  return forged?.hosts === undefined ? {} : { fetchHosts: forged.hosts };
}

/** The members of a forged tool's artifact that discovery needs. */
export interface ForgedToolInfo {
  name: string;
  description: string;
  /** JSON text. */
  inputSchema: string;
  implementation: { mode: string; steps?: readonly { tool: string }[] };
  requires: { apis: readonly string[]; domains: readonly string[] };
}

/** The entry for a forged tool. */
export function forgedEntry(tool: ForgedToolInfo): DiscoveryEntry {
  const { name, description, inputSchema, implementation, requires } = tool;
  const usesNetwork = requires.apis.includes('fetch');
  const steps = implementation.steps ?? [];
  return {
    id: forgedId(name),
    kind: 'emergent-tool',
    name,
    description: description.slice(0, MAX_DESCRIPTION),
    category: 'emergent',
    tags: forgedTags(implementation.mode),
    parameters: parameterTextOf(inputSchema),
    request: {
      kind: 'Tool',
      name,
      category: 'code_execution',
      action: usesNetwork ? 'comms:external' : 'code:read',
      forged: true,
      ...(usesNetwork && requires.domains.length > 0 ? { hosts: requires.domains } : {}),
    },
    requiredTools: [...new Set(steps.map((step) => step.tool))],
    ...(usesNetwork ? { fetchHosts: requires.domains } : {}),
  };
}

/** The ID of a forged tool. */
export function forgedId(name: string): string {
  return `emergent-tool:${name}`;
}

export function forgedTags(mode: string): string[] {
  return ['runtime-created', 'agent-forged', mode.toLowerCase()];
}

/** The entry for a Capability object of the catalogue. */
export function capabilityEntry({ metadata, spec }: Pick<Capability, 'metadata' | 'spec'>): DiscoveryEntry {
  const kind = spec.type.toLowerCase() as Exclude<CapabilityKind, 'emergent-tool'>;
  const { tool, displayName, requiredSecrets = [] } = spec;
  const name = tool?.name ?? metadata.name;
  const topics = topicsOf(spec);
  // An agent that has the tool can call it, whatever the entry says.
  const unavailable = catalogueOnly(spec) ?? (kind === 'skill' ? undefined : NOT_CALLABLE);
  return {
    id: `${kind}:${name}`,
    kind,
    name,
    ...(displayName === undefined ? {} : { displayName }),
    description: spec.description.slice(0, MAX_DESCRIPTION),
    category: spec.category ?? tool?.category ?? 'other',
    tags: topics.tags,
    ...(tool === undefined
      ? {}
      : { parameters: parameterText(tool.inputSchema as JsonObject), request: listingOf(tool) }),
    requiredTools: topics.requiredTools,
    ...(requiredSecrets.length === 0 ? {} : { requiredConnections: requiredSecrets }),
    links: topics.links,
    ...(unavailable === undefined ? {} : { unavailable }),
    ...(spec.source === undefined ? {} : { imported: true as const }),
  };
}

/** What a Capability says about itself for a search. */
export function topicsOf({
  category,
  tags = [],
  requiredTools = [],
  edges = [],
}: Capability['spec']): CapabilityTopics {
  const links = edges.map(({ type, target, weight = '1' }) => {
    const value = Number(weight);
    return { type, target, weight: Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : 0 };
  });
  return { ...(category === undefined ? {} : { category }), tags, requiredTools, links };
}

function listingOf({ name, category, action }: NonNullable<Capability['spec']['tool']>): PolicyRequest {
  return { kind: 'Tool', name, category, action: action ?? DEFAULT_ACTION[category], forged: false };
}
