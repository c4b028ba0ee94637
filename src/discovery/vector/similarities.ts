import type { DiscoveryEntry } from '../entry.ts';
import { compareText } from '../lexical/compare-text.ts';
import type { EntrySimilarities } from '../lexical/search.ts';
import type { VectorHit } from './port.ts';

/** How near entries are in meaning to the parts of one query. */
export class Similarities implements EntrySimilarities {
  readonly ofOthers: Float64Array;
  readonly #byId = new Map<string, Float64Array>();
  readonly #idOf: (entry: DiscoveryEntry) => string;

  /** `hits`: for each part of the query. Only the `most` nearest count, whatever groups they were found in. */
  constructor(hits: readonly (readonly VectorHit[])[], most: number, idOf: (entry: DiscoveryEntry) => string) {
    this.#idOf = idOf;
    this.ofOthers = new Float64Array(hits.length);
    for (const [part, list] of hits.entries()) {
      const nearest = list.toSorted((a, b) => b.cosine - a.cosine || compareText(a.id, b.id)).slice(0, most);
      // With fewer hits, every entry with a vector is among them.
      this.ofOthers[part] = nearest.length < most ? 0 : Math.max(0, nearest.at(-1)?.cosine ?? 0);
      for (const { id, cosine } of nearest) {
        const parts = this.#byId.get(id) ?? new Float64Array(hits.length);
        parts[part] = Math.min(1, Math.max(0, cosine));
        this.#byId.set(id, parts);
      }
    }
  }

  of(entry: DiscoveryEntry): Float64Array | undefined {
    return this.#byId.get(this.#idOf(entry));
  }
}
