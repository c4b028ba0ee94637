import { DEFAULT_ACTION } from '../api/v1alpha1/actions.ts';
import type { CapabilitySpec } from '../api/v1alpha1/capability.ts';
import type { JsonObject } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import type { ToolDescriptor } from '../tools/contract.ts';
import { validateSchema } from '../tools/json-schema/compiler.ts';
import { topicsOf } from './entry.ts';

type CapabilityTool = NonNullable<CapabilitySpec['tool']>;

/** The tool of a Capability as models and policies read it. `resultOrigin`: what executes it. */
export function capabilityDescriptor(
  spec: CapabilitySpec,
  { name, category, action = DEFAULT_ACTION[category], inputSchema, outputSchema }: CapabilityTool,
  resultOrigin: 'Mcp' | 'Web',
): ToolDescriptor {
  const { description, hasSideEffects = true, examples } = spec;
  return {
    name,
    description,
    inputSchema: inputSchema as JsonObject,
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonObject }),
    category,
    action,
    ...(examples === undefined ? {} : { usage: examples }),
    sideEffects: hasSideEffects,
    locality: 'Brokered',
    resultOrigin,
    topics: topicsOf(spec),
  };
}

/** Why a schema of the tool cannot be used; undefined when both can. */
export function capabilitySchemaProblem({ inputSchema, outputSchema }: CapabilityTool): string | undefined {
  for (const [what, schema] of Object.entries({ inputSchema, outputSchema })) {
    if (schema === undefined) continue;
    const found = validateSchema(schema as JsonObject, what).find(({ problem }) => problem !== 'unknown-keyword');
    if (found !== undefined) return printable(found.message, 300);
  }
  return undefined;
}
