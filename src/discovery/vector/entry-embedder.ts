import { LRUCache } from 'lru-cache';
import { type CallOptions, remainingMs, withTimeout } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import { type EmbedTexts, MAX_BATCH } from './embed-texts.ts';
import type { VectorIndex, VectorSpace } from './port.ts';
import { unitVectors } from './unit-vectors.ts';

/** The text of an entry that has no vector. */
export interface EntryText {
  id: string;
  text: string;
}

export interface EntryEmbedderOptions {
  index: VectorIndex;
  /** Embeds at the expense of the owner of the entries. */
  embed: EmbedTexts;
  clock: Clock;
  /** Called with each new vector. */
  saw: (vector: Float32Array | undefined) => void;
  closing: AbortSignal;
}

const BATCH_TIMEOUT_MS = 30_000;
/** After a failure nothing is embedded for this time. */
const COOL_DOWN_MS = 30_000;
/** Texts of one namespace: a whole catalog at once, and then what its changes need. */
const TEXTS = { burst: 5_000, perSecond: 10 };
const MAX_NAMESPACES = 1_000;
const MAX_REFUSED = 10_000;

interface Waiting extends EntryText {
  space: VectorSpace;
  /** Called when the vector is in the index, or will not be. */
  end: () => void;
  ended: Promise<void>;
}

/** Embeds the texts of entries in the background, one batch at a time, and stores their vectors. */
export class EntryEmbedder {
  readonly #options: EntryEmbedderOptions;
  readonly #waiting = new Map<string, Waiting>();
  /** Texts that the embedder refuses alone, such as ones that are too long for it. */
  readonly #refused = new LRUCache<string, true>({ max: MAX_REFUSED });
  readonly #buckets: LRUCache<string, TokenBucket>;
  #isRunning = false;
  #pausedUntil = -Infinity;

  constructor(options: EntryEmbedderOptions) {
    this.#options = options;
    this.#buckets = new LRUCache({ max: MAX_NAMESPACES });
  }

  /** Embeds the texts; resolves when it has, or at the deadline. Does not throw: without a vector an entry is found by its words. */
  async add(space: VectorSpace, texts: readonly EntryText[], op: CallOptions): Promise<void> {
    const { clock, closing } = this.#options;
    if (closing.aborted || clock.monotonic() < this.#pausedUntil) return;
    const added = texts.flatMap((text) => this.#add(space, text) ?? []);
    if (added.length === 0) return;
    void this.#run();
    const waited = new AbortController();
    const ended = Promise.all(added.map((one) => one.ended));
    try {
      const signal = AbortSignal.any([op.signal, waited.signal]);
      await Promise.race([ended, clock.sleep(remainingMs(op, clock), signal).catch(() => undefined)]);
    } finally {
      waited.abort();
    }
  }

  #add(space: VectorSpace, text: EntryText): Waiting | undefined {
    const key = `${space.namespace}/${text.id}`;
    const known = this.#waiting.get(key);
    if (known !== undefined) return known;
    if (this.#refused.has(key) || !this.#bucketOf(space.namespace).tryTake()) return undefined;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const added = { ...text, space, end, ended };
    this.#waiting.set(key, added);
    return added;
  }

  #bucketOf(namespace: string): TokenBucket {
    const known = this.#buckets.get(namespace);
    if (known !== undefined) return known;
    const bucket = new TokenBucket(this.#options.clock, TEXTS);
    this.#buckets.set(namespace, bucket);
    return bucket;
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      while (this.#waiting.size > 0 && !this.#options.closing.aborted) await this.#embed(this.#nextBatch());
    } catch {
      // The observer of `embed` and of the index has counted the failure. Searches add the entries again later.
      this.#pausedUntil = this.#options.clock.monotonic() + COOL_DOWN_MS;
    } finally {
      this.#isRunning = false;
      this.#end([...this.#waiting.values()]);
    }
  }

  #nextBatch(): Waiting[] {
    const [first] = this.#waiting.values();
    return [...this.#waiting.values()]
      .filter(({ space }) => space.namespace === first?.space.namespace)
      .slice(0, MAX_BATCH);
  }

  /** A batch that the embedder refuses is divided, so that one text does not keep the others from being embedded. */
  async #embed(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#store(batch);
      this.#end(batch);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const [only] = batch;
      if (batch.length === 1 && only !== undefined) {
        this.#refused.set(`${only.space.namespace}/${only.id}`, true);
        return this.#end(batch);
      }
      const middle = Math.ceil(batch.length / 2);
      await this.#embed(batch.slice(0, middle));
      await this.#embed(batch.slice(middle));
    }
  }

  async #store(batch: readonly Waiting[]): Promise<void> {
    const { index, embed, clock, closing, saw } = this.#options;
    const [first] = batch;
    if (first === undefined) return;
    const op = { signal: closing, deadline: Infinity, key: first.id };
    await withTimeout(op, clock, BATCH_TIMEOUT_MS, async (during) => {
      const vectors = unitVectors(
        await embed(
          batch.map(({ text }) => text),
          during,
        ),
      );
      saw(vectors[0]);
      const dimensions = vectors[0]?.length ?? 0;
      const entries = batch.flatMap(({ id }, position) => {
        const vector = vectors[position];
        return vector === undefined ? [] : [{ id, vector }];
      });
      await index.upsert({ namespace: first.space.namespace, dimensions }, entries, during);
    });
  }

  #end(batch: readonly Waiting[]): void {
    for (const { space, id, end } of batch) {
      this.#waiting.delete(`${space.namespace}/${id}`);
      end();
    }
  }
}

/** The embedder answered, and refuses these texts. */
function isRefusal(error: unknown): boolean {
  if (!isTemperError(error) || error.retry !== 'never') return false;
  const { status } = error.details;
  return error.code === 'TEMPER_MODEL_CONTEXT_OVERFLOW' || status === 400 || status === 413 || status === 422;
}
