import type { Decider } from '../policy/types.ts';
import { toolRequest } from '../tools/authorize.ts';
import type { CallerContext, ToolDescriptor, ToolView } from '../tools/contract.ts';
import { buildResult } from './result.ts';
import { DISCOVER_TOOL } from './discover-tool.ts';
import { type DiscoveryEntry, forgedId, toolEntry } from './entry.ts';
import { deniedHosts } from './fetch-hosts.ts';
import { LexicalIndex } from './lexical/lexical-index.ts';
import type { Discovery } from './port.ts';
import type { HybridSearch, SearchCaller } from './vector/hybrid-search.ts';
import type { EmbedTexts } from './vector/embed-texts.ts';
import { search } from './lexical/search.ts';
import type { SearchScope, UsedTogetherLink } from './lexical/visible-entries.ts';
import type { UsedTogether } from './graph/used-together.ts';

export interface SessionDiscoveryDeps {
  view: (caller: CallerContext) => ToolView;
  decider: (caller: CallerContext) => Decider;
  /** Searches by meaning too; absent: by words alone. */
  hybrid?: { search: HybridSearch; embed: EmbedTexts } | undefined;
  /** Capabilities beside the tools. A change makes another list. */
  catalog?: (() => readonly DiscoveryEntry[]) | undefined;
  /** Whether there is a connection of this name; absent: there is none. */
  hasConnection?: ((name: string) => boolean) | undefined;
  /** Forged tools that the agent uses together. */
  usedTogether?: (() => readonly UsedTogether[]) | undefined;
}

/** Discovery for an agent without a gateway: searches the tools of its session and a catalog. Each version of the tool list is indexed once. */
export function sessionDiscovery({
  view,
  decider,
  hybrid,
  catalog,
  hasConnection = () => false,
  usedTogether,
}: SessionDiscoveryDeps): Discovery {
  // A view is immutable; another set of tools is another view.
  const indexes = new WeakMap<ToolView, LexicalIndex>();
  const catalogs = new WeakMap<readonly DiscoveryEntry[], LexicalIndex>();
  const catalogIndex = (): LexicalIndex[] => {
    const entries = catalog?.();
    if (entries === undefined) return [];
    const index = catalogs.get(entries) ?? LexicalIndex.of(entries);
    catalogs.set(entries, index);
    return [index];
  };
  const indexOf = (tools: ToolView): LexicalIndex => {
    const known = indexes.get(tools);
    if (known !== undefined) return known;
    const others = tools.list().filter(({ name }) => name !== DISCOVER_TOOL.name);
    const index = LexicalIndex.of(others.map(toolEntry));
    indexes.set(tools, index);
    return index;
  };
  return {
    async search(query, caller, op) {
      const tools = view(caller);
      const policy = decider(caller);
      const scope: SearchScope = {
        indexes: [indexOf(tools), ...catalogIndex()],
        permits: ({ request }) => request === undefined || policy.decide(request).effect !== 'Deny',
        usedTogether: usedTogetherLinks(usedTogether?.() ?? [], tools),
      };
      const ranked =
        hybrid === undefined
          ? search(query, scope)
          : await hybrid.search.search(query, scope, searchCaller(caller, hybrid.embed), op);
      const permitted = tools.list().filter((tool) => policy.decide(toolRequest(tool)).effect !== 'Deny');
      return buildResult(ranked, {
        callable: new Set(permitted.flatMap(callNames)),
        hasConnection,
        fetchProblem: (hosts) => deniedHosts(hosts, policy),
      });
    },
  };
}

/** The pairs of which the session has both tools. */
function usedTogetherLinks(pairs: readonly UsedTogether[], tools: ToolView): UsedTogetherLink[] {
  if (pairs.length === 0) return [];
  const ids = new Map(
    tools.list().flatMap(({ name, forged }) => (forged === undefined ? [] : [[forged.digest, forgedId(name)]])),
  );
  return pairs.flatMap(({ tools: [one, other], percent }) => {
    const [first, second] = [ids.get(one), ids.get(other)];
    return first === undefined || second === undefined ? [] : [{ ids: [first, second], weight: percent / 100 }];
  });
}

/** In one process the agent pays for all vectors, so all entries are embedded in the background. */
export function searchCaller({ agent, namespace }: CallerContext, embed: EmbedTexts): SearchCaller {
  return { id: `${namespace}/${agent}`, namespace, embed, ownerOf: () => 'Namespace' };
}

/** The names of a tool in calls. Steps of composed tools name the digest of a forged one. */
function callNames({ name, forged }: ToolDescriptor): string[] {
  return forged === undefined ? [name] : [name, `${name}@${forged.digest}`];
}
