import type { ItemOrigin } from '../../models/item-origin.ts';
import type { ModelMessage } from '../../models/port.ts';
import { ASK_TOOL, TASK_TOOL } from '../tools/ask-tool.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

/** Their results have the words of other agents. */
const ANSWERING_TOOLS: ReadonlySet<string> = new Set([ASK_TOOL.name, TASK_TOOL.name]);

/** Where the result of a tool comes from. A name without a tool has a result of the engine. */
export function originOfTool(tool: Pick<ToolDescriptor, 'name' | 'category' | 'action'> | undefined): ItemOrigin {
  if (tool === undefined) return 'Engine';
  switch (tool.category) {
    case 'web':
      return 'Web';
    case 'mcp':
      return 'Mcp';
    case 'file_system':
      return 'File';
    case 'memory':
      return 'Memory';
    default:
      if (tool.action === 'comms:external') return 'Web';
      return ANSWERING_TOOLS.has(tool.name) ? 'Reply' : 'Tool';
  }
}

/** Users and tools have origins; what the model itself said has those of all items before it. */
export function originOf(item: ModelMessage): ItemOrigin | undefined {
  return item.role === 'assistant' ? undefined : (item.origin ?? 'Unknown');
}

/** The origins of what a summary stands for: an earlier summary counts with all of its own. */
export function originsOf(items: readonly ModelMessage[]): ItemOrigin[] {
  const found = new Set<ItemOrigin>();
  for (const item of items) {
    const origins = item.role === 'user' && item.summary !== undefined ? item.summary.origins : undefined;
    for (const origin of origins ?? [originOf(item)]) if (origin !== undefined) found.add(origin);
  }
  return [...found].sort();
}

/** The item with the origin, unless it has one. */
export function withOrigin(item: ModelMessage, origin: ItemOrigin): ModelMessage {
  return item.role === 'assistant' || item.origin !== undefined ? item : { ...item, origin };
}
