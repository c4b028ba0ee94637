import { textSize } from '../../models/charge/request-size.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { categoryOf } from './names.ts';

/** Tokens of the map in every request. */
export const MAX_MAP_TOKENS = 200;
const MAX_NAMES = 4;

/**
 * The categories of the tools with some of their names, the largest category first. It contains names only, never a description, which is
 * untrusted text. The same for the same tools, and within its budget for any. Pure.
 */
export function toolMap(tools: readonly ToolDescriptor[]): string {
  const categories = [...categoriesOf(tools)].sort(
    ([one, a], [other, b]) => b.length - a.length || (one < other ? -1 : 1),
  );
  for (let names = MAX_NAMES; names >= 0; names -= 1) {
    const map = render(tools.length, categories, names);
    if (textSize(map).tokens <= MAX_MAP_TOKENS) return map;
  }
  return render(tools.length, [], 0);
}

function categoriesOf(tools: readonly ToolDescriptor[]): Map<string, string[]> {
  const categories = new Map<string, string[]>();
  for (const tool of tools) {
    const { name } = tool;
    const key = categoryOf(tool);
    const names = categories.get(key);
    if (names === undefined) categories.set(key, [name]);
    else names.push(name);
  }
  return categories;
}

function render(count: number, categories: readonly [string, string[]][], shown: number): string {
  const lines = categories.map(([category, names]) => {
    const some = names.toSorted().slice(0, shown);
    const more = names.length - some.length;
    const list = some.length === 0 ? '' : `${some.join(', ')} `;
    const rest = more > 0 && some.length > 0 ? `(+${more} more) ` : '';
    return `- ${category}: ${list}${rest}[${names.length}]`;
  });
  return [
    `You have ${count} further tools. Find them with discover_capabilities or list_tools, get one with load_tool, and call it by its name.`,
    ...lines,
  ].join('\n');
}
