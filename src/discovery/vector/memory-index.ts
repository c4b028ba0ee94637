import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { nearest } from './nearest.ts';
import type { VectorEntry, VectorFilter, VectorHit, VectorIndex, VectorSpace } from './port.ts';

/** Vectors that one process keeps: 50,000 with 384 dimensions are 77 MB. */
const MAX_VECTORS = 50_000;
const MAX_BYTES = 128 * 1_024 * 1_024;
const BYTES_PER_NUMBER = 4;

/** The vectors in this process, which a query compares one by one. Those that were used longest ago leave first. */
export class MemoryVectorIndex implements VectorIndex {
  readonly #vectors: LRUCache<string, Float32Array>;

  constructor({ most = MAX_VECTORS, bytes = MAX_BYTES }: { most?: number; bytes?: number } = {}) {
    this.#vectors = new LRUCache({
      max: most,
      maxSize: bytes,
      sizeCalculation: ({ length }) => length * BYTES_PER_NUMBER,
    });
  }

  get size(): number {
    return this.#vectors.size;
  }

  async missing({ namespace, dimensions }: VectorSpace, ids: readonly string[]): Promise<string[]> {
    return ids.filter((id) => this.#vectors.get(keyOf(namespace, id))?.length !== dimensions);
  }

  async upsert({ namespace }: VectorSpace, entries: readonly VectorEntry[]): Promise<void> {
    for (const { id, vector } of entries) this.#vectors.set(keyOf(namespace, id), vector);
  }

  async query(
    { namespace, dimensions }: VectorSpace,
    vectors: readonly Float32Array[],
    { ids, most }: VectorFilter,
  ): Promise<VectorHit[][]> {
    const known = ids.flatMap((id) => {
      const vector = this.#vectors.get(keyOf(namespace, id));
      return vector?.length === dimensions ? [{ id, vector }] : [];
    });
    const hits: VectorHit[][] = [];
    for (const wanted of vectors) {
      hits.push(nearest(wanted, known, most));
      // Thousands of comparisons take some milliseconds: other requests are served in between.
      await setImmediate();
    }
    return hits;
  }
}

function keyOf(namespace: string, id: string): string {
  return `${namespace}/${id}`;
}
