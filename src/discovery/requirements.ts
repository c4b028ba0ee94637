import type { CapabilitySpec } from '../api/v1alpha1/capability.ts';

/** What a capability needs to be used. */
export interface Requirements {
  /** Names of connections. */
  connections: readonly string[];
  /** Names of tools, or `name@sha256:…`. */
  tools: readonly string[];
}

/** What there is for an agent, or for all agents of a namespace. */
export interface Means {
  hasConnection(name: string): boolean;
  hasTool(name: string): boolean;
}

/**
 * What the capability needs and there is not. This is the rule for capabilities of every kind: for the results of searches, for the tools of
 * Capabilities and for the conditions that the operator writes. Pure.
 */
export function missingRequirements({ connections, tools }: Requirements, means: Means): Requirements {
  return {
    connections: connections.filter((name) => !means.hasConnection(name)),
    tools: tools.filter((name) => !means.hasTool(name)),
  };
}

/** Why a Capability is an entry of the catalogue alone, which agents can neither call nor load; undefined when agents can. Pure. */
export function catalogueOnly({
  type,
  backend,
  content,
}: Pick<CapabilitySpec, 'type' | 'backend' | 'content'>): string | undefined {
  if (backend !== undefined) return undefined;
  switch (type) {
    case 'Skill':
      return content === undefined ? 'it has no text' : undefined;
    case 'Tool':
      return NOT_CALLABLE;
    default:
      return 'a catalogue entry only';
  }
}

/** Of a tool that no agent has. */
export const NOT_CALLABLE = 'it cannot be called';
