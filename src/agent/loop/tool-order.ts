import type { ToolDescriptor } from '../../tools/contract.ts';

/** The order of the tools of an agent in its model requests. */
export interface ToolOrder {
  sort(visible: readonly ToolDescriptor[]): ToolDescriptor[];
}

/**
 * Keeps a stable order, because a provider's prompt cache ends at the first difference: built-in tools first, by name, then forged ones by
 * the time when they were accepted, so that a new tool is the last one in this message, in later ones and in other processes. A tool that
 * appears later in a message is appended.
 */
export function createToolOrder(): ToolOrder {
  const positions = new Map<string, number>();
  return {
    sort(visible) {
      const added = visible.filter((tool) => !positions.has(tool.name)).sort(byAge);
      for (const tool of added) positions.set(tool.name, positions.size);
      return [...visible].sort((a, b) => (positions.get(a.name) ?? 0) - (positions.get(b.name) ?? 0));
    },
  };
}

function byAge(a: ToolDescriptor, b: ToolDescriptor): number {
  const [one, other] = [sortKeyOf(a), sortKeyOf(b)];
  return one === other ? 0 : one < other ? -1 : 1;
}

function sortKeyOf({ name, forged }: ToolDescriptor): string {
  return forged === undefined ? `built-in ${name}` : `forged ${forged.acceptedAt ?? ''} ${name}`;
}
