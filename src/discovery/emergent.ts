import type { EmergentTool } from '../api/v1alpha1/emergenttool.ts';
import type { JsonObject } from '../lib/json.ts';
import { forgedId, forgedTags } from './entry.ts';

/** A capability as discovery describes it. */
export interface CapabilityDescriptor {
  /** `kind:name`. */
  id: string;
  kind: 'emergent-tool';
  name: string;
  displayName: string;
  description: string;
  category: string;
  tags: string[];
  /** Names of the tools that a composed tool calls. */
  requiredTools: string[];
  available: boolean;
  hasSideEffects: boolean;
  /** The complete schemas, so that a found tool can be called. */
  fullSchema: JsonObject;
  /** The Kubernetes object of the capability. */
  sourceRef: string;
}

/**
 * Describes a forged tool for discovery. Discovery covers the tiers Agent and Shared only: a tool of tier Session is already in
 * the tool list of its session and must not be visible elsewhere. Composed tools may have side effects; tools with fetch have.
 */
export function emergentCapability(tool: EmergentTool): CapabilityDescriptor {
  const { artifact } = tool.spec;
  const { name, description, implementation, requires } = artifact;
  const steps = implementation.steps ?? [];
  return {
    id: forgedId(name),
    kind: 'emergent-tool',
    name,
    displayName: name.replaceAll('_', ' '),
    description,
    category: 'emergent',
    tags: forgedTags(implementation.mode),
    requiredTools: [...new Set(steps.map((step) => step.tool.split('@')[0] ?? step.tool))],
    available: tool.status?.active === true,
    hasSideEffects: requires.apis.includes('fetch') || steps.length > 0,
    fullSchema: {
      input: JSON.parse(artifact.inputSchema) as JsonObject,
      output: JSON.parse(artifact.outputSchema) as JsonObject,
    },
    sourceRef: `emergenttools/${tool.metadata.name}`,
  };
}
