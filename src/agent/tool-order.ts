import type { ToolSpec } from '../models/port.ts';
import type { ToolDescriptor } from '../tools/contract.ts';

/** Turns what an agent may see into what the model is told. */
export interface ToolOrder {
  specs(visible: readonly ToolDescriptor[]): ToolSpec[];
}

/**
 * A stable order, because a provider's prompt cache ends at the first difference: first built-in tools, then forged ones,
 * by name; a tool that appears later goes to the end.
 */
export function createToolOrder(): ToolOrder {
  const places = new Map<string, number>();
  return {
    specs(visible) {
      const fresh = visible.filter((tool) => !places.has(tool.name)).sort(byOriginAndName);
      for (const tool of fresh) places.set(tool.name, places.size);
      const ordered = [...visible].sort((a, b) => (places.get(a.name) ?? 0) - (places.get(b.name) ?? 0));
      return ordered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    },
  };
}

function byOriginAndName(a: ToolDescriptor, b: ToolDescriptor): number {
  const origin = Number(a.forged !== undefined) - Number(b.forged !== undefined);
  return origin === 0 ? (a.name < b.name ? -1 : 1) : origin;
}
