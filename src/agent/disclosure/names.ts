import { DISCOVER_TOOL } from '../../discovery/discover-tool.ts';
import { LIST_TOOLS_NAME, LOAD_TOOL_NAME } from '../code/list-tools.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { FINISH_TOOL_NAME } from '../returns/finish.ts';

export const LOAD_RESOURCE_NAME = 'load_tool_resource';

/** The model always gets these: the others are found with them, and without `finish` it could not answer. */
export const ALWAYS_OFFERED: ReadonlySet<string> = new Set([
  DISCOVER_TOOL.name,
  LIST_TOOLS_NAME,
  LOAD_TOOL_NAME,
  LOAD_RESOURCE_NAME,
  FINISH_TOOL_NAME,
]);

export function byName(a: ToolDescriptor, b: ToolDescriptor): number {
  return a.name < b.name ? -1 : 1;
}

/** The category of a tool in the map and in lists. */
export function categoryOf({ category, forged }: ToolDescriptor): string {
  return forged === undefined ? category : 'forged';
}
