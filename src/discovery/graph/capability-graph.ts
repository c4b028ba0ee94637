import { MultiDirectedGraph } from 'graphology';
import type { CapabilityLink, LinkType } from '../../tools/contract.ts';
import { type DiscoveryEntry, forgedId } from '../entry.ts';

/** How strongly a link counts. Links by category alone made results worse, so only declared ones exist. */
export const LINK_WEIGHTS: Readonly<Record<LinkType, number>> = {
  DependsOn: 1,
  ComposedWith: 0.5,
  TaggedWith: 0.3,
  SameCategory: 0.1,
};

/** A link between two IDs, seen from one of them. */
export interface Link {
  type: LinkType;
  /** The ID at the other end. */
  other: string;
  /** With the weight of the type. */
  weight: number;
  /** The key of the entry that declared the link. */
  key: string;
  /** The other capability is what the one needs. */
  isNeeded: boolean;
}

interface EdgeAttributes {
  type: LinkType;
  weight: number;
  key: string;
}

/** Links of one entry. */
const MAX_EDGES = 64;
/** Links of the index. Further ones are omitted until others were removed. */
const MAX_ALL_EDGES = 50_000;
/** Links of one capability that a search follows, those that it declares first. */
const MAX_FOLLOWED = 64;

/** The links that the entries of an index declare. An ID that no entry has may be the end of a link: the entry may come later. */
export class CapabilityGraph {
  readonly #graph = new MultiDirectedGraph<Record<string, never>, EdgeAttributes>();
  readonly #edgesOf = new Map<string, readonly string[]>();

  set(key: string, entry: DiscoveryEntry): void {
    this.delete(key);
    const edges = edgesOf(entry).slice(0, Math.max(0, MAX_ALL_EDGES - this.#graph.size));
    if (edges.length === 0) return;
    this.#graph.mergeNode(entry.id);
    const names = edges.map(({ type, target, weight }) => {
      this.#graph.mergeNode(target);
      return this.#graph.addEdge(entry.id, target, { type, weight: weight * LINK_WEIGHTS[type], key });
    });
    this.#edgesOf.set(key, names);
  }

  delete(key: string): void {
    for (const edge of this.#edgesOf.get(key) ?? []) {
      const ends = this.#graph.extremities(edge);
      this.#graph.dropEdge(edge);
      for (const end of ends) if (this.#graph.hasNode(end) && this.#graph.degree(end) === 0) this.#graph.dropNode(end);
    }
    this.#edgesOf.delete(key);
  }

  /** The accepted links of an ID in both directions, those that its own entry declares first. */
  linksOf(id: string, accepts: (link: Link) => boolean): Link[] {
    if (!this.#graph.hasNode(id)) return [];
    const links: Link[] = [];
    const follow = (edge: string, isOut: boolean): boolean => {
      const { type, weight, key } = this.#graph.getEdgeAttributes(edge);
      const link = {
        type,
        weight,
        key,
        other: this.#graph.opposite(id, edge),
        isNeeded: isOut && type === 'DependsOn',
      };
      if (accepts(link)) links.push(link);
      return links.length === MAX_FOLLOWED;
    };
    this.#graph.someOutEdge(id, (edge) => follow(edge, true));
    this.#graph.someInEdge(id, (edge) => links.length === MAX_FOLLOWED || follow(edge, false));
    return links;
  }
}

/** The declared links, and one to each required tool, which may be built in or forged. */
function edgesOf({ id, requiredTools, links = [] }: DiscoveryEntry): CapabilityLink[] {
  const names = requiredTools.map((tool) => tool.split('@')[0] ?? tool);
  const required = [...new Set(names)].slice(0, MAX_EDGES / 2).flatMap((name) => [
    { type: 'DependsOn' as const, target: `tool:${name}`, weight: 1 },
    { type: 'DependsOn' as const, target: forgedId(name), weight: 1 },
  ]);
  return [...links, ...required].filter(({ target }) => target !== id).slice(0, MAX_EDGES);
}
