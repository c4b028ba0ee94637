import type { EmergentTool } from '../api/v1alpha1/emergenttool.ts';
import type { JsonObject } from '../lib/json.ts';
import { forgedTags } from './entry.ts';

/** What discovery knows of one thing an agent could use. */
export interface CapabilityDescriptor {
  /** `kind:name`. */
  id: string;
  kind: 'emergent-tool';
  name: string;
  displayName: string;
  description: string;
  category: string;
  tags: string[];
  /** Forged tools a composed one is pinned to, by name. */
  requiredTools: string[];
  available: boolean;
  hasSideEffects: boolean;
  /** The schemas whole, so that what is found can be called. */
  fullSchema: JsonObject;
  /** The object it was made from. */
  sourceRef: string;
}

/**
 * A forged tool as discovery sees it. Only tiers Agent and Shared are discovered: a tool of tier Session is in the tool list of
 * its session already, and nobody else's business. Composed tools may have effects; a tool that fetches has.
 */
export function emergentCapability(tool: EmergentTool): CapabilityDescriptor {
  const { artifact } = tool.spec;
  const { name, description, implementation, requires } = artifact;
  const steps = implementation.steps ?? [];
  return {
    id: `emergent-tool:${name}`,
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
