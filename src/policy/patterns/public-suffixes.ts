import { edgeChild, edgeLength, edgeStart, labelText, nodeFlags, rulesRoot } from 'tldts/dist/cjs/src/data/trie.js';
import suffixes from 'tldts/dist/cjs/src/suffix-trie.js';

/** The rules of registries and those of platforms. */
const ALL_RULES = { allowIcannDomains: true, allowPrivateDomains: true };
/** One suffix for each name that is not one and has some below it, such as `amazonaws.com`. */
const SUFFIX_BELOW = suffixesBelow();

/**
 * Why a wildcard in front of these labels matches names of different owners, by the Public Suffix List; undefined when it matches names
 * of one. `deep` is a wildcard for any number of labels. The labels are lower case and ASCII. A last label that is not on the list, such as
 * `internal`, has one owner.
 */
export function sharedSuffixError(labels: readonly string[], deep: boolean): string | undefined {
  const name = labels.join('.');
  const below = SUFFIX_BELOW.get(name);
  if (isPublicSuffix(name) || (labels.length === 1 && below !== undefined))
    return `names below the public suffix "${name}" have different owners; name a domain that one of them registered`;
  if (!deep || below === undefined) return undefined;
  return `it covers the public suffix "${below}", and names below that have different owners; name the domain of one of them, or write "*.${name}" for one label`;
}

/** Whether a name is one, or each name below it, as the rule `*.kawasaki.jp` says. */
function isPublicSuffix(name: string): boolean {
  const found = { publicSuffix: '', isIcann: false, isPrivate: false };
  // No rule names the label "-". For a name that no rule covers, the answer is its last label.
  suffixes.default(`-.${name}`, ALL_RULES, found);
  return (found.isIcann || found.isPrivate) && found.publicSuffix.length >= name.length;
}

/** Reads the tree of the library, whose functions answer for single names only. */
function suffixesBelow(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const starts = labelStarts();
  /** The first suffix below the node. */
  const visit = (node: number, name: string): string | undefined => {
    let first: string | undefined;
    for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge += 1) {
      const child = edgeChild[edge] ?? node;
      const start = starts[edge] ?? 0;
      const label = labelText.slice(start, start + (edgeLength[edge] ?? 0));
      const below = name === '' ? label : `${label}.${name}`;
      const next = visit(child, below);
      first ??= nodeFlags[child] === 0 ? next : below;
    }
    if (first !== undefined && nodeFlags[node] === 0) found.set(name, first);
    return first;
  };
  visit(rulesRoot, '');
  return found;
}

function labelStarts(): Uint32Array {
  const starts = new Uint32Array(edgeLength.length);
  for (let edge = 1; edge < starts.length; edge += 1) {
    starts[edge] = (starts[edge - 1] ?? 0) + (edgeLength[edge - 1] ?? 0);
  }
  return starts;
}
