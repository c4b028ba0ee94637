import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { type CallOptions, remainingMs, withTimeout } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { EmbedTexts } from './embed-texts.ts';
import { FailedTexts, isRefusal } from './failed-texts.ts';
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
  /** Failed texts that it remembers. */
  mostFailed?: number;
}

const BATCH_TIMEOUT_MS = 30_000;
const PROBE_TIMEOUT_MS = 10_000;
/** The embedder works when it has a vector for this text, which no namespace can choose. */
const PROBE = 'capability';
/** An embedder that does not work is not asked for this time, and then with the probe first. */
const COOL_DOWN_MS = 30_000;
/** Texts of one namespace: a whole catalog at once, and then what its changes need. */
const TEXTS = { burst: 5_000, perSecond: 10 };
const MAX_NAMESPACES = 1_000;
/** As many as it takes to divide a batch until a text is alone. A text whose failures are forgotten ends after as many, too. */
const MAX_FAILURES = 6;

interface Waiting extends EntryText {
  space: VectorSpace;
  failures: number;
  /** Called when the vector is in the index, or will not be. */
  end: () => void;
  ended: Promise<void>;
}

/**
 * Embeds the texts of entries in the background, one batch at a time, and stores their vectors. Namespaces take turns. After a failure a probe
 * decides: while the embedder has vectors for other texts, the batch is divided and other namespaces go on; otherwise all of them wait.
 */
export class EntryEmbedder {
  readonly #options: EntryEmbedderOptions;
  /** By namespace and ID; the namespace whose turn is next is the first. */
  readonly #waiting = new Map<string, Map<string, Waiting>>();
  readonly #failed: FailedTexts;
  readonly #buckets: LRUCache<string, TokenBucket>;
  /** Until when a namespace waits, because the index did not store its vectors. */
  readonly #unstored: LRUCache<string, number>;
  #isRunning = false;
  #isDown = false;
  #pausedUntil = -Infinity;

  constructor(options: EntryEmbedderOptions) {
    this.#options = options;
    this.#failed = new FailedTexts(options.clock, options.mostFailed);
    this.#buckets = new LRUCache(entries(MAX_NAMESPACES));
    this.#unstored = new LRUCache(entries(MAX_NAMESPACES));
  }

  /** Embeds the texts; resolves when it has, or at the deadline. Does not throw: without a vector an entry is found by its words. */
  async add(space: VectorSpace, texts: readonly EntryText[], op: CallOptions): Promise<void> {
    const { clock } = this.#options;
    if (this.#isPaused() || clock.monotonic() < (this.#unstored.get(space.namespace) ?? -Infinity)) return;
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
    const { namespace } = space;
    const known = this.#waiting.get(namespace)?.get(text.id);
    if (known !== undefined) return known;
    if (this.#failed.isSkipped(keyOf({ space, id: text.id })) || !this.#bucketOf(namespace).tryTake()) return undefined;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const added = { ...text, space, failures: 0, end, ended };
    const others = this.#waiting.get(namespace) ?? new Map<string, Waiting>();
    this.#waiting.set(namespace, others.set(text.id, added));
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
      if (this.#isDown) await this.#probe();
      while (!this.#isPaused() && this.#waiting.size > 0) await this.#embed(this.#nextBatch());
    } finally {
      this.#isRunning = false;
      // Searches add the entries again later.
      for (const texts of this.#waiting.values()) this.#end([...texts.values()]);
    }
  }

  #isPaused(): boolean {
    const { closing, clock } = this.#options;
    return closing.aborted || clock.monotonic() < this.#pausedUntil;
  }

  /** Of the namespace whose turn it is. Empty when all its texts are skipped; they end. */
  #nextBatch(): Waiting[] {
    for (const [namespace, texts] of this.#waiting) {
      this.#waiting.delete(namespace);
      this.#waiting.set(namespace, texts);
      const batch = this.#failed.batchOf([...texts.values()], keyOf);
      if (batch.length === 0) this.#end([...texts.values()]);
      return batch;
    }
    return [];
  }

  /** Does not throw. The observer of `embed` and of the index has counted a failure. */
  async #embed(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 0) return;
    const keys = batch.map(keyOf);
    try {
      await this.#store(batch);
      this.#failed.succeeded(keys);
      this.#end(batch);
    } catch (error) {
      if (isTemperError(error, 'TEMPER_VECTORS_UNAVAILABLE')) return this.#waitForIndex(batch);
      if (isTemperError(error, 'TEMPER_MODEL_RATE_LIMITED')) return this.#pause();
      if (isRefusal(error)) this.#failed.failed(keys, 'Refused');
      else this.#failed.failed(keys, (await this.#probe()) ? 'Failed' : 'Unclear');
      for (const one of batch) one.failures += 1;
      this.#end(batch.filter((one) => one.failures >= MAX_FAILURES || this.#failed.isSkipped(keyOf(one))));
    }
  }

  /** Whether the embedder has a vector for the probe; without it, all namespaces wait. */
  async #probe(): Promise<boolean> {
    const { embed, clock, closing } = this.#options;
    const op = { signal: closing, deadline: Infinity, key: PROBE };
    try {
      await withTimeout(op, clock, PROBE_TIMEOUT_MS, async (during) => unitVectors(await embed([PROBE], during)));
      this.#isDown = false;
    } catch {
      this.#pause();
    }
    return !this.#isDown;
  }

  #pause(): void {
    this.#isDown = true;
    this.#pausedUntil = this.#options.clock.monotonic() + COOL_DOWN_MS;
  }

  /** The vectors of a namespace are lost with the failure, so the next attempt costs the same again. */
  #waitForIndex([first]: readonly Waiting[]): void {
    if (first === undefined) return;
    const { namespace } = first.space;
    this.#unstored.set(namespace, this.#options.clock.monotonic() + COOL_DOWN_MS);
    this.#end([...(this.#waiting.get(namespace)?.values() ?? [])]);
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
      const texts = this.#waiting.get(space.namespace);
      texts?.delete(id);
      if (texts?.size === 0) this.#waiting.delete(space.namespace);
      end();
    }
  }
}

function keyOf({ space, id }: Pick<Waiting, 'space' | 'id'>): string {
  return `${space.namespace}/${id}`;
}
