import type { Decider } from '../policy/types.ts';
import { toolRequest } from '../tools/authorize.ts';
import type { CallerContext, ToolDescriptor, ToolView } from '../tools/contract.ts';
import { buildResult } from './result.ts';
import { DISCOVER_TOOL } from './discover-tool.ts';
import { toolEntry } from './entry.ts';
import { LexicalIndex } from './lexical/lexical-index.ts';
import type { Discovery } from './port.ts';
import { search } from './lexical/search.ts';

export interface SessionDiscoveryDeps {
  view: (caller: CallerContext) => ToolView;
  decider: (caller: CallerContext) => Decider;
}

/** Discovery for an agent without a gateway: searches the tools of its session. Each version of the tool list is indexed once. */
export function sessionDiscovery({ view, decider }: SessionDiscoveryDeps): Discovery {
  // A view is immutable; another set of tools is another view.
  const indexes = new WeakMap<ToolView, LexicalIndex>();
  const indexOf = (tools: ToolView): LexicalIndex => {
    const known = indexes.get(tools);
    if (known !== undefined) return known;
    const others = tools.list().filter(({ name }) => name !== DISCOVER_TOOL.name);
    const index = LexicalIndex.of(others.map(toolEntry));
    indexes.set(tools, index);
    return index;
  };
  return {
    async search(query, caller) {
      const tools = view(caller);
      const policy = decider(caller);
      const ranked = search(query, {
        indexes: [indexOf(tools)],
        permits: ({ request }) => request !== undefined && policy.decide(request).effect !== 'Deny',
      });
      const permitted = tools.list().filter((tool) => policy.decide(toolRequest(tool)).effect !== 'Deny');
      return buildResult(ranked, new Set(permitted.flatMap(callNames)));
    },
  };
}

/** The names of a tool in calls. Steps of composed tools name the digest of a forged one. */
function callNames({ name, forged }: ToolDescriptor): string[] {
  return forged === undefined ? [name] : [name, `${name}@${forged.digest}`];
}
