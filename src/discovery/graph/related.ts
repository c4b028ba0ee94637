import type { DiscoveryEntry } from '../entry.ts';
import { compareText } from '../lexical/compare-text.ts';
import type { VisibleEntries } from '../lexical/visible-entries.ts';
import type { RankedEntry } from '../ranked-entry.ts';
import { LINK_WEIGHTS, type Link } from './capability-graph.ts';

/** The results whose links count. */
const MAX_LINKED = 10;
/** A result gains this share of the relevance of a linked result. */
const BOOST = 0.3;
/** The relevance of a capability that only a link brings in, as a share of that of the linked result. */
const PULL = 0.6;
/** The capabilities that links alone bring in. */
const MAX_PULLED = 10;
/** Places among the first results for what they need. */
const RESERVED = 3;
/** Fewer common tags are chance. */
const MIN_COMMON_TAGS = 2;

/**
 * The results with what belongs to them: results that are linked gain relevance, and so do those with common tags; a capability that a result
 * needs or is composed with is a result too, and what one of the first results needs follows it. Only links between visible entries count
 * that a visible entry declares. Pure.
 */
export function withRelated(ranked: RankedEntry[], visible: VisibleEntries): RankedEntry[] {
  const first = ranked.slice(0, MAX_LINKED);
  const links = new Map(first.map(({ entry }) => [entry.id, visible.linksOf(entry.id)]));
  if (first.every(({ entry }) => links.get(entry.id)?.length === 0 && topicsOf(entry).length < MIN_COMMON_TAGS))
    return ranked;
  const all = new Map<string, RankedEntry>(ranked.map(({ entry, relevance }) => [entry.id, { entry, relevance }]));
  for (const from of first) {
    for (const link of links.get(from.entry.id) ?? []) follow(from, link, all, visible, ranked.length + MAX_PULLED);
    for (const to of first) gain(all.get(to.entry.id), from.relevance * tagWeight(from.entry, to.entry));
  }
  const sorted = [...all.values()].sort((a, b) => b.relevance - a.relevance || compareText(a.entry.id, b.entry.id));
  return withNeeded(sorted, all, links);
}

function follow(
  { relevance }: RankedEntry,
  { other, type, weight, isNeeded }: Link,
  all: Map<string, RankedEntry>,
  visible: VisibleEntries,
  most: number,
): void {
  const known = all.get(other);
  const entry = visible.byId(other);
  if (entry === undefined) return;
  if (known !== undefined) gain(known, relevance * weight);
  else if ((isNeeded || type === 'ComposedWith') && weight > 0 && all.size < most)
    all.set(other, { entry, relevance: PULL * weight * relevance });
}

function gain(candidate: RankedEntry | undefined, amount: number): void {
  if (candidate !== undefined) candidate.relevance = Math.min(1, candidate.relevance + BOOST * amount);
}

/** The share of common tags, with the weight of that link. */
function tagWeight(from: DiscoveryEntry, to: DiscoveryEntry): number {
  if (from === to) return 0;
  const [tags, others] = [topicsOf(from), topicsOf(to)];
  const common = tags.filter((tag) => others.includes(tag)).length;
  if (common < MIN_COMMON_TAGS) return 0;
  return (LINK_WEIGHTS.TaggedWith * common) / Math.max(tags.length, others.length);
}

/** The tags of a forged tool say how it was made, and not what it is about. */
function topicsOf({ kind, tags }: DiscoveryEntry): readonly string[] {
  return kind === 'emergent-tool' ? [] : tags;
}

/** Moves what one of the first results needs behind it. */
function withNeeded(
  sorted: readonly RankedEntry[],
  all: ReadonlyMap<string, RankedEntry>,
  links: ReadonlyMap<string, readonly Link[]>,
): RankedEntry[] {
  const placed = new Set<RankedEntry>();
  let reserved = 0;
  for (const candidate of sorted) {
    if (placed.size >= MAX_LINKED) break;
    placed.add(candidate);
    for (const { other, isNeeded } of links.get(candidate.entry.id) ?? []) {
      const needed = isNeeded ? all.get(other) : undefined;
      if (needed === undefined || placed.has(needed) || reserved === RESERVED) continue;
      placed.add(needed);
      reserved += 1;
    }
  }
  return [...placed, ...sorted.filter((candidate) => !placed.has(candidate))];
}
