import type { Tool } from '@modelcontextprotocol/server';
import type { ToolDescriptor } from '../../tools/contract.ts';

/** Categories of tools that reach other systems. */
const OPEN_WORLD: ReadonlySet<string> = new Set(['web', 'communication', 'deployment', 'mcp', 'other']);

/** A tool in the form of the protocol. Its annotations say what Temper knows; a client takes the worst for the rest. */
export function toolDescription(tool: ToolDescriptor): Tool {
  const { name, description, inputSchema, outputSchema, sideEffects, category, forged } = tool;
  return {
    name,
    description,
    inputSchema: { ...inputSchema, type: 'object' },
    // The protocol knows only outputs that are objects.
    ...(outputSchema?.['type'] === 'object' ? { outputSchema: { ...outputSchema, type: 'object' } } : {}),
    annotations: {
      readOnlyHint: !sideEffects,
      ...(sideEffects ? {} : { destructiveHint: false, idempotentHint: true }),
      openWorldHint: forged?.pure !== true && OPEN_WORLD.has(category),
    },
  };
}
