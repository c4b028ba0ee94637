import { DISCOVER_TOOL } from '../../discovery/discover-tool.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { jsonSize } from '../../models/charge/request-size.ts';
import type { ModelMessage, ToolCall, ToolSpec } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { LOAD_TOOL_NAME } from '../code/list-tools.ts';

/** What a search finds is loaded when it is among its first results. */
const LOADED_RESULTS = 2;

/** A tool that the model got to know. */
interface LoadEvent {
  name: string;
  /** The model asked for this tool. */
  isExplicit: boolean;
}

/**
 * The tools that the model of a session got to know and that fit the budget, in the order in which they were loaded: by `load_tool`, as one of
 * the first results of a search, by a forge, or because it called them. The tool that was loaded first leaves first. It derives from the
 * stored history alone, so that every process offers the same tools in the same order. Pure.
 */
export function loadedTools(
  items: readonly ModelMessage[],
  tools: readonly ToolDescriptor[],
  bodyTokens: number,
): ToolDescriptor[] {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const loaded = new Map<string, ToolDescriptor>();
  let total = 0;
  for (const { name, isExplicit } of loadEvents(items)) {
    const tool = byName.get(name);
    if (tool === undefined || (loaded.has(name) && !isExplicit)) continue;
    const tokens = definitionTokens(tool);
    if (tokens > bodyTokens) continue;
    if (loaded.delete(name)) total -= tokens;
    loaded.set(name, tool);
    total += tokens;
    for (const [oldest, first] of loaded) {
      if (total <= bodyTokens) break;
      loaded.delete(oldest);
      total -= definitionTokens(first);
    }
  }
  return [...loaded.values()];
}

/** The last of the tools that fit the budget together, in their order. Pure. */
export function lastWithin(tools: readonly ToolDescriptor[], tokens: number): ToolDescriptor[] {
  let remaining = tokens;
  const start = tools.findLastIndex((tool) => {
    remaining -= definitionTokens(tool);
    return remaining < 0;
  });
  return tools.slice(start + 1);
}

/** Tokens of a tool in a model request. */
export function definitionTokens(tool: ToolDescriptor): number {
  return jsonSize({ ...asSpec(tool) }).tokens;
}

export function asSpec({ name, description, inputSchema }: ToolDescriptor): ToolSpec {
  return { name, description, inputSchema };
}

function loadEvents(items: readonly ModelMessage[]): LoadEvent[] {
  // Ids of calls are unique in one answer only.
  let calls = new Map<string, ToolCall>();
  return items.flatMap((item) => {
    if (item.role === 'assistant') calls = new Map(item.toolCalls.map((call) => [call.id, call]));
    return item.role === 'tool' && item.journal !== true ? eventsOf(item, calls.get(item.toolCallId)) : [];
  });
}

function eventsOf(item: Extract<ModelMessage, { role: 'tool' }>, call: ToolCall | undefined): LoadEvent[] {
  switch (item.name) {
    case LOAD_TOOL_NAME:
      return item.isError ? [] : [{ name: textAt(parsed(call?.arguments), ['name']), isExplicit: true }];
    case FORGE_TOOL_NAME:
      return item.isError ? [] : [{ name: textAt(parsed(call?.arguments), ['name']), isExplicit: false }];
    case DISCOVER_TOOL.name:
      return item.isError ? [] : foundIn(parsed(item.text)).map((name) => ({ name, isExplicit: false }));
    default:
      return [{ name: item.name, isExplicit: false }];
  }
}

function foundIn(result: Json): string[] {
  const found = member(result, 'capabilities');
  if (!Array.isArray(found)) return [];
  return found
    .filter((one) => member(one, 'available') === true)
    .slice(0, LOADED_RESULTS)
    .map((one) => textAt(one, ['name']));
}

/** Stored histories are untrusted, and long results are cut. */
function parsed(text: string | undefined): Json {
  try {
    return parseUntrustedJson(text ?? 'null');
  } catch {
    return null;
  }
}
