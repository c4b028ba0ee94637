import type { DiscoveryEntry } from '../entry.ts';
import { compareText } from '../lexical/compare-text.ts';
import type { EntrySimilarities } from '../lexical/search.ts';
import type { VectorHit } from './port.ts';

export interface ComparedEntries {
  /** For each part of the query, the entries that are near, in any order. */
  hits: readonly (readonly VectorHit[])[];
  /** Only so many of the hits count. */
  most: number;
  /** The ids of all entries that were compared. Other entries have no vector. */
  compared: ReadonlySet<string>;
  idOf: (entry: DiscoveryEntry) => string;
}

/** How near entries are in meaning to the parts of one query. */
export class Similarities implements EntrySimilarities {
  readonly #compared: ReadonlySet<string>;
  readonly #idOf: (entry: DiscoveryEntry) => string;
  readonly #byId = new Map<string, Float64Array>();
  /** For each part, of compared entries that are not near, and of entries without a vector. */
  readonly #ofFar: Float64Array;
  readonly #neutral: Float64Array;

  constructor({ hits, most, compared, idOf }: ComparedEntries) {
    this.#compared = compared;
    this.#idOf = idOf;
    this.#ofFar = new Float64Array(hits.length);
    this.#neutral = new Float64Array(hits.length);
    for (const [part, list] of hits.entries()) {
      const nearest = list
        .toSorted((a, b) => b.cosine - a.cosine || compareText(a.id, b.id))
        .slice(0, most)
        .map(({ id, cosine }) => ({ id, similarity: Math.min(1, Math.max(0, cosine)) }));
      // With fewer hits, every compared entry is among them.
      this.#ofFar[part] = nearest.length < most ? 0 : (nearest.at(-1)?.similarity ?? 0);
      this.#neutral[part] = nearest.reduce((sum, { similarity }) => sum + similarity, 0) / Math.max(1, nearest.length);
      for (const { id, similarity } of nearest) {
        const parts = this.#byId.get(id) ?? new Float64Array(hits.length);
        parts[part] = similarity;
        this.#byId.set(id, parts);
      }
    }
  }

  of(entry: DiscoveryEntry): Float64Array | undefined {
    return this.#byId.get(this.#idOf(entry));
  }

  ofOther(entry: DiscoveryEntry): Float64Array {
    return this.#compared.has(this.#idOf(entry)) ? this.#ofFar : this.#neutral;
  }
}
