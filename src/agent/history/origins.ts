import { isActionType } from '../../api/v1alpha1/actions.ts';
import type { ItemOrigin } from '../../models/item-origin.ts';
import type { ModelMessage } from '../../models/port.ts';
import { ASK_TOOL, TASK_TOOL } from '../tools/ask-tool.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

/** Their results have the words of other agents. */
const ANSWERING_TOOLS: ReadonlySet<string> = new Set([ASK_TOOL.name, TASK_TOOL.name]);

/** Where the result of a tool comes from. A name without a tool has a result of the engine. */
export function originOfTool(
  tool: Pick<ToolDescriptor, 'name' | 'category' | 'action' | 'resultOrigin'> | undefined,
): ItemOrigin {
  if (tool === undefined) return 'Engine';
  if (tool.resultOrigin !== undefined) return tool.resultOrigin;
  switch (tool.category) {
    case 'web':
      return 'Web';
    case 'mcp':
      return 'Mcp';
    case 'file_system':
      return 'File';
    // Programs and Git print what is in files, unless the call reaches a host.
    case 'terminal':
    case 'version_control':
      return isOfHost(tool) ? 'Web' : 'File';
    case 'memory':
      return 'Memory';
    case 'database':
      return 'Database';
    default:
      if (isOfHost(tool)) return 'Web';
      return ANSWERING_TOOLS.has(tool.name) ? 'Reply' : 'Tool';
  }
}

/** A custom action may do whatever a policy says, so it may read what a host answers. */
function isOfHost({ action }: Pick<ToolDescriptor, 'action'>): boolean {
  return action === 'comms:external' || !isActionType(action);
}

/** Users and tools have origins; what the model itself said has those of all items before it. */
function originOf(item: ModelMessage): ItemOrigin | undefined {
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

/** An item that a provider adds: its words are notes of the engine, or a summary of items of the session, whatever it says about them. */
export function addedByProvider(item: ModelMessage, session: readonly ModelMessage[]): ModelMessage {
  if (item.role !== 'user') return item;
  const { text, summary } = item;
  if (summary === undefined) return { role: 'user', text, origin: 'Engine' };
  const { items } = summary;
  return { role: 'user', text, origin: 'Engine', summary: { items, origins: originsOf(session.slice(0, items)) } };
}
