import type { ToolSpec } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

/** Converts the visible tools of an agent into the tool list of a model request. */
export interface ToolOrder {
  specs(visible: readonly ToolDescriptor[]): ToolSpec[];
}

/**
 * Keeps a stable order, because a provider's prompt cache ends at the first difference: built-in tools first, then forged ones, by
 * name; a tool that appears later is appended.
 */
export function createToolOrder(): ToolOrder {
  const positions = new Map<string, number>();
  return {
    specs(visible) {
      const added = visible.filter((tool) => !positions.has(tool.name)).sort(byOriginAndName);
      for (const tool of added) positions.set(tool.name, positions.size);
      const ordered = [...visible].sort((a, b) => (positions.get(a.name) ?? 0) - (positions.get(b.name) ?? 0));
      return ordered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    },
  };
}

function byOriginAndName(a: ToolDescriptor, b: ToolDescriptor): number {
  const origin = Number(a.forged !== undefined) - Number(b.forged !== undefined);
  return origin === 0 ? (a.name < b.name ? -1 : 1) : origin;
}
