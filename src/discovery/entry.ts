import { DEFAULT_ACTION } from '../api/v1alpha1/actions.ts';
import type { Capability } from '../api/v1alpha1/capability.ts';
import type { PolicyRequest } from '../policy/types.ts';
import { toolRequest } from '../tools/authorize.ts';
import type { ToolDescriptor } from '../tools/contract.ts';

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

/** One thing an agent could use, as far as it is searched or shown. */
export interface DiscoveryEntry {
  /** `kind:name`. */
  id: string;
  kind: CapabilityKind;
  name: string;
  description: string;
  category: string;
  tags: readonly string[];
  /** The question that decides whether it may be listed. Absent for what nobody can call: that is shown to all of its namespace. */
  request?: PolicyRequest;
  /** Whose it is; absent: anybody's of the namespace. */
  agent?: string;
  /** Tools it needs, as a name or `name@sha256:…`. */
  requiredTools: readonly string[];
  /** Why it cannot be used, in a few words; absent when it can. */
  unavailable?: string;
}

/** What of a text is kept: search reads no more and an answer shows less. */
const MOST_DESCRIPTION = 1_024;

/** A tool the agent has. */
export function toolEntry(tool: ToolDescriptor): DiscoveryEntry {
  const { name, description, category, forged } = tool;
  const kind = forged === undefined ? 'tool' : 'emergent-tool';
  return {
    id: `${kind}:${name}`,
    kind,
    name,
    description: description.slice(0, MOST_DESCRIPTION),
    category: forged === undefined ? category : 'emergent',
    tags: forged === undefined ? [] : ['runtime-created', 'agent-forged'],
    request: toolRequest(tool),
    requiredTools: [],
  };
}

/** What is known of a forged tool without opening it. */
export interface ForgedParts {
  name: string;
  description: string;
  implementation: { mode: string; steps?: readonly { tool: string }[] };
  requires: { apis: readonly string[] };
}

/** A forged tool; `reachable`: can its `fetch` reach anything here? */
export function forgedEntry({ name, description, implementation, requires }: ForgedParts, reachable: boolean) {
  const reachesOut = requires.apis.includes('fetch');
  const steps = implementation.steps ?? [];
  const entry: DiscoveryEntry = {
    id: `emergent-tool:${name}`,
    kind: 'emergent-tool',
    name,
    description: description.slice(0, MOST_DESCRIPTION),
    category: 'emergent',
    tags: forgedTags(implementation.mode),
    request: {
      kind: 'Tool',
      name,
      category: 'code_execution',
      action: reachesOut ? 'comms:external' : 'code:read',
      forged: true,
    },
    requiredTools: [...new Set(steps.map((step) => step.tool))],
  };
  if (reachesOut && !reachable) entry.unavailable = 'it fetches, and pods have no way out of the cluster yet';
  return entry;
}

export function forgedTags(mode: string): string[] {
  return ['runtime-created', 'agent-forged', mode.toLowerCase()];
}

/** Why nothing of this kind can be used yet. */
const NOT_YET: Record<Exclude<CapabilityKind, 'emergent-tool'>, string> = {
  tool: 'calls of it are not carried out yet',
  skill: 'its text cannot be loaded yet',
  extension: 'its text cannot be loaded yet',
  channel: 'a catalogue entry only',
  voice: 'a catalogue entry only',
  productivity: 'a catalogue entry only',
};

/** An object of the catalogue. None can be used yet, and each says so. */
export function capabilityEntry({ metadata, spec, status }: Capability): DiscoveryEntry {
  const kind = spec.type.toLowerCase() as Exclude<CapabilityKind, 'emergent-tool'>;
  const { tool, requiredSecrets = [] } = spec;
  const name = tool?.name ?? metadata.name;
  const reasons = [
    ...(status?.available === false ? ['its status says so'] : []),
    ...(requiredSecrets.length === 0 ? [] : [`needs connection ${requiredSecrets.slice(0, 3).join(', ')}`]),
    NOT_YET[kind],
  ];
  return {
    id: `${kind}:${name}`,
    kind,
    name,
    description: spec.description.slice(0, MOST_DESCRIPTION),
    category: spec.category ?? tool?.category ?? 'other',
    tags: spec.tags ?? [],
    ...(tool === undefined ? {} : { request: listingOf(tool) }),
    requiredTools: spec.requiredTools ?? [],
    unavailable: reasons.join('; '),
  };
}

function listingOf({ name, category, action }: NonNullable<Capability['spec']['tool']>): PolicyRequest {
  return { kind: 'Tool', name, category, action: action ?? DEFAULT_ACTION[category], forged: false };
}
