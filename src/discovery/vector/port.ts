import type { CallOptions } from '../../lib/call-options.ts';

/** The vector of a text. */
export interface VectorEntry {
  /** The digest of the text; see `entryTextId`. */
  id: string;
  vector: Float32Array;
}

/** An entry near a vector. */
export interface VectorHit {
  id: string;
  /** The cosine of both vectors. */
  cosine: number;
}

/** Vectors of one namespace that one model made with one number of dimensions. */
export interface VectorSpace {
  namespace: string;
  dimensions: number;
}

/** The entries that a query may find, and how many of them. */
export interface VectorFilter {
  /** Only these. A hidden entry has no place among the results, and no influence on them. */
  ids: readonly string[];
  most: number;
}

/**
 * Vectors of entries. All of them can be made again from the catalog, so an index may lose them. All methods throw
 * TEMPER_VECTORS_UNAVAILABLE when the index does not answer.
 */
export interface VectorIndex {
  /** Of these ids, those without a vector. */
  missing(space: VectorSpace, ids: readonly string[], op: CallOptions): Promise<string[]>;
  /** Adds or replaces vectors. Idempotent. An index that is full omits the rest. */
  upsert(space: VectorSpace, entries: readonly VectorEntry[], op: CallOptions): Promise<void>;
  /** For each vector the nearest of the entries of the filter, nearest first, ties by id. */
  query(
    space: VectorSpace,
    vectors: readonly Float32Array[],
    filter: VectorFilter,
    op: CallOptions,
  ): Promise<VectorHit[][]>;
}
