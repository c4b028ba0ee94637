import { printable } from '../../lib/printable.ts';
import { textSize } from '../../models/charge/request-size.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { definitionTokens } from './loaded-tools.ts';
import type { RankedTool } from './tool-search.ts';

/** What fits a message in mode `Semantic`, in tokens: lines with names and descriptions, and whole definitions. */
export const SUGGESTED = { results: 5, definitions: 2, lineTokens: 800, definitionTokens: 2_000 } as const;
const MAX_LINE_DESCRIPTION = 120;
/** A tool with less than this share of the relevance of the best one does not fit the message. */
const MIN_SHARE = 0.3;
const TITLE = 'Tools that may fit the message, one JSON object per line:';

/** What a message adds to the requests for it in mode `Semantic`. */
export interface Suggestions {
  /** A title and one line per named tool; empty when no tool is named. */
  lines: readonly string[];
  /** Their definitions are lent for the message. */
  tools: readonly ToolDescriptor[];
}

/** The tools of a search for a message that its requests get, within the budgets. `bodyTokens`: what the definitions of loaded tools may have. Pure. */
export function suggestionsOf(ranked: readonly RankedTool[], bodyTokens: number): Suggestions {
  const first = ranked.slice(0, SUGGESTED.results);
  const best = first[0]?.relevance ?? 0;
  const fitting = first.filter(({ relevance }) => relevance >= best * MIN_SHARE).map(({ tool }) => tool);
  const budget = Math.min(SUGGESTED.definitionTokens, bodyTokens);
  const lent = within(fitting.slice(0, SUGGESTED.definitions), budget, definitionTokens);
  const named = fitting.filter((tool) => !lent.includes(tool)).map(lineOf);
  const lines = within(named, SUGGESTED.lineTokens, (line) => textSize(line).tokens);
  return { tools: lent, lines: lines.length === 0 ? [] : [TITLE, ...lines] };
}

/** What the suggestions cost in a request, in tokens. */
export function suggestedTokens({ lines, tools }: Suggestions): { lines: number; definitions: number } {
  return {
    lines: textSize(lines.join('\n')).tokens,
    definitions: tools.reduce((sum, tool) => sum + definitionTokens(tool), 0),
  };
}

/** JSON, because the description is untrusted text. */
function lineOf({ name, description }: ToolDescriptor): string {
  return JSON.stringify({ name, description: printable(description, MAX_LINE_DESCRIPTION) });
}

/** The first items that fit the budget; an item that does not fit is skipped. */
function within<T>(items: readonly T[], tokens: number, sizeOf: (item: T) => number): T[] {
  let remaining = tokens;
  return items.filter((item) => {
    const size = sizeOf(item);
    if (size > remaining) return false;
    remaining -= size;
    return true;
  });
}
