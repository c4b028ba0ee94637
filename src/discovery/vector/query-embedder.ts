import { LRUCache } from 'lru-cache';
import { sha256 } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { EmbedTexts } from './embed-texts.ts';
import { unitVectors } from './unit-vectors.ts';

/** Queries of agents, and their own entries: 20,000 with 384 dimensions are 30 MB. */
const MAX_CACHED = 20_000;
const MAX_BYTES = 32 * 1_024 * 1_024;

/** Who searches. */
export interface QueryCaller {
  /** Unique per agent. Vectors are not shared between agents: the time of a search would tell what another agent searched for. */
  id: string;
  /** Embeds at the expense of the agent. */
  embed: EmbedTexts;
}

/** The vectors of texts of agents, and those of the last texts of each agent from a cache. */
export class QueryEmbedder {
  readonly #cache = new LRUCache<string, Float32Array>({
    max: MAX_CACHED,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ byteLength }) => byteLength,
  });
  readonly #cached: (hits: number, misses: number) => void;
  #dimensions: number | undefined;

  constructor(cached: (hits: number, misses: number) => void) {
    this.#cached = cached;
  }

  /** Unit vectors of equal dimensions, one per text. Throws the errors of `Model.embed`. */
  async embed(texts: readonly string[], caller: QueryCaller, op: CallOptions): Promise<Float32Array[]> {
    const known = new Map(texts.flatMap((text) => entryOf(text, this.#cache.get(keyOf(caller, text)))));
    const missing = [...new Set(texts)].filter((text) => !known.has(text));
    this.#cached(known.size, missing.length);
    if (missing.length > 0) {
      const fresh = await this.#fresh(missing, caller, op);
      // Vectors of the model before cannot be compared with those of this one.
      if (!this.saw(fresh[0])) known.clear();
      this.#keep(missing, fresh, caller, known);
      const lost = [...new Set(texts)].filter((text) => !known.has(text));
      if (lost.length > 0) this.#keep(lost, await this.#fresh(lost, caller, op), caller, known);
    }
    return unitVectors(texts.flatMap((text) => known.get(text) ?? []));
  }

  /** Call it with each new vector. False: the model has other dimensions than before, and the vectors before are forgotten. */
  saw(fresh: Float32Array | undefined): boolean {
    const before = this.#dimensions;
    this.#dimensions = fresh?.length;
    if (before === undefined || before === this.#dimensions) return true;
    this.#cache.clear();
    return false;
  }

  async #fresh(texts: string[], { embed }: QueryCaller, op: CallOptions): Promise<Float32Array[]> {
    return unitVectors(await embed(texts, op));
  }

  #keep(
    texts: readonly string[],
    vectors: readonly Float32Array[],
    caller: QueryCaller,
    known: Map<string, Float32Array>,
  ): void {
    for (const [position, text] of texts.entries()) {
      const vector = vectors[position];
      if (vector === undefined) continue;
      known.set(text, vector);
      this.#cache.set(keyOf(caller, text), vector);
    }
  }
}

function entryOf(text: string, vector: Float32Array | undefined): [string, Float32Array][] {
  return vector === undefined ? [] : [[text, vector]];
}

function keyOf({ id }: QueryCaller, text: string): string {
  return `${id} ${sha256(text)}`;
}
