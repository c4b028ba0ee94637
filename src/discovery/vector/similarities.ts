import type { DiscoveryEntry } from '../entry.ts';
import { compareText } from '../lexical/compare-text.ts';
import type { EntrySimilarities, EstimatedSimilarity } from '../lexical/search.ts';
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
  readonly #ofFar: EstimatedSimilarity;
  readonly #ofUnknown: EstimatedSimilarity;

  constructor({ hits, most, compared, idOf }: ComparedEntries) {
    this.#compared = compared;
    this.#idOf = idOf;
    const far = new Float64Array(hits.length);
    const last = new Float64Array(hits.length);
    const first = new Float64Array(hits.length);
    for (const [part, list] of hits.entries()) {
      const nearest = list
        .toSorted((a, b) => b.cosine - a.cosine || compareText(a.id, b.id))
        .slice(0, most)
        .map(({ id, cosine }) => ({ id, similarity: Math.min(1, Math.max(0, cosine)) }));
      last[part] = nearest.at(-1)?.similarity ?? 0;
      first[part] = nearest[0]?.similarity ?? 0;
      // With fewer hits, every compared entry is among them.
      far[part] = nearest.length < most ? 0 : last[part];
      for (const { id, similarity } of nearest) {
        const parts = this.#byId.get(id) ?? new Float64Array(hits.length);
        parts[part] = similarity;
        this.#byId.set(id, parts);
      }
    }
    this.#ofFar = { least: far, most: far };
    this.#ofUnknown = { least: last, most: first };
  }

  of(entry: DiscoveryEntry): Float64Array | undefined {
    return this.#byId.get(this.#idOf(entry));
  }

  /** Without a vector an entry counts as much as the near one that has the same place by its words would. */
  ofOther(entry: DiscoveryEntry): EstimatedSimilarity {
    return this.#compared.has(this.#idOf(entry)) ? this.#ofFar : this.#ofUnknown;
  }
}
