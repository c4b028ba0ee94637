import type { ToolDescriptor } from '../../tools/contract.ts';

/** The order of the tools of an agent in its model requests. */
export interface ToolOrder {
  sort(visible: readonly ToolDescriptor[]): ToolDescriptor[];
}

/**
 * Keeps a stable order, because a provider's prompt cache ends at the first difference: built-in tools first, then forged ones, by
 * name; a tool that appears later is appended.
 */
export function createToolOrder(): ToolOrder {
  const positions = new Map<string, number>();
  return {
    sort(visible) {
      const added = visible.filter((tool) => !positions.has(tool.name)).sort(byOriginAndName);
      for (const tool of added) positions.set(tool.name, positions.size);
      return [...visible].sort((a, b) => (positions.get(a.name) ?? 0) - (positions.get(b.name) ?? 0));
    },
  };
}

function byOriginAndName(a: ToolDescriptor, b: ToolDescriptor): number {
  const origin = Number(a.forged !== undefined) - Number(b.forged !== undefined);
  return origin === 0 ? (a.name < b.name ? -1 : 1) : origin;
}
