import { toolEntry } from '../../discovery/entry.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import { search } from '../../discovery/lexical/search.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

export interface RankedTool {
  tool: ToolDescriptor;
  relevance: number;
}

/** Sessions of one agent have different tools; the index is built again when most of its entries are of other sessions. */
const MAX_UNUSED = 200;

/** A search over the tools that a caller may call. The index of an agent is kept between searches and follows its tools. */
export class ToolSearch {
  #index = new LexicalIndex();
  #indexed = new Map<string, ToolDescriptor>();

  /** The tools with words of the text, best first. */
  rank(text: string, tools: readonly ToolDescriptor[]): RankedTool[] {
    this.#follow(tools);
    const byId = new Map(tools.map((tool) => [toolId(tool), tool]));
    const ranked = search({ query: text }, { indexes: [this.#index], permits: ({ id }) => byId.has(id) });
    return ranked.flatMap(({ entry, relevance }) => {
      const tool = byId.get(entry.id);
      return tool === undefined ? [] : [{ tool, relevance }];
    });
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

function toolId({ name, forged }: ToolDescriptor): string {
  return `${forged === undefined ? 'tool' : 'emergent-tool'}:${name}`;
}
