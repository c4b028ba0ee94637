import { toolEntry } from '../../discovery/entry.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import { search } from '../../discovery/lexical/search.ts';
import type { SearchScope } from '../../discovery/lexical/visible-entries.ts';
import type { DiscoveryQuery } from '../../discovery/port.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { CallerContext, ToolDescriptor } from '../../tools/contract.ts';

export interface RankedTool {
  tool: ToolDescriptor;
  relevance: number;
}

/** The ID of an entry, `kind:name`, and how well it fits a query, from 0 to 1. */
export interface RankedId {
  id: string;
  relevance: number;
}

/**
 * Ranks the entries of a scope by words and meaning, best first, at the expense of the caller. Undefined where words alone count, such as when
 * an embedder does not answer in time. Does not throw.
 */
export type RankByMeaning = (
  query: DiscoveryQuery,
  scope: SearchScope,
  caller: CallerContext,
  op: CallOptions,
) => Promise<readonly RankedId[] | undefined>;

/** Sessions of one agent have different tools; the index is built again when most of its entries are of other sessions. */
const MAX_UNUSED = 200;

/** A search over the tools that a caller may call. The index of an agent is kept between searches and follows its tools. */
export class ToolSearch {
  #index = new LexicalIndex();
  #indexed = new Map<string, ToolDescriptor>();

  /** The tools with words of the text, best first. */
  rank(text: string, tools: readonly ToolDescriptor[]): RankedTool[] {
    const { scope, byId } = this.#scopeOf(tools);
    return toolsOf(byWords({ query: text }, scope), byId);
  }

  /** The tools that fit the text by words and meaning, best first. */
  async rankByMeaning(
    text: string,
    tools: readonly ToolDescriptor[],
    rank: (query: DiscoveryQuery, scope: SearchScope) => ReturnType<RankByMeaning>,
  ): Promise<RankedTool[]> {
    const { scope, byId } = this.#scopeOf(tools);
    const ranked = toolsOf((await rank({ query: text }, scope)) ?? [], byId);
    return ranked.length > 0 ? ranked : toolsOf(byWords({ query: text }, scope), byId);
  }

  /** What a caller may not call is not in the scope, so it has no place in a ranking. */
  #scopeOf(tools: readonly ToolDescriptor[]): { scope: SearchScope; byId: ReadonlyMap<string, ToolDescriptor> } {
    this.#follow(tools);
    const byId = new Map(tools.map((tool) => [toolId(tool), tool]));
    return { scope: { indexes: [this.#index], permits: ({ id }) => byId.has(id) }, byId };
  }

  #follow(tools: readonly ToolDescriptor[]): void {
    if (this.#indexed.size > tools.length + MAX_UNUSED) {
      this.#index = new LexicalIndex();
      this.#indexed = new Map();
    }
    for (const tool of tools) {
      const id = toolId(tool);
      if (this.#indexed.get(id) === tool) continue;
      this.#index.set(id, toolEntry(tool));
      this.#indexed.set(id, tool);
    }
  }
}

function byWords(query: DiscoveryQuery, scope: SearchScope): RankedId[] {
  return search(query, scope).map(({ entry: { id }, relevance }) => ({ id, relevance }));
}

function toolsOf(ranked: readonly RankedId[], byId: ReadonlyMap<string, ToolDescriptor>): RankedTool[] {
  return ranked.flatMap(({ id, relevance }) => {
    const tool = byId.get(id);
    return tool === undefined ? [] : [{ tool, relevance }];
  });
}

function toolId({ name, forged }: ToolDescriptor): string {
  return `${forged === undefined ? 'tool' : 'emergent-tool'}:${name}`;
}
