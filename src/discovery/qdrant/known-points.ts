import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';

export interface KnownPointsOptions {
  /** IDs of all spaces, and of one; a full namespace has 5,000 entries. */
  most: number;
  mostOfSpace: number;
  /** After this time the server is asked again: one that was restored from an older snapshot lacks points, and does not say so. */
  maxAgeMs: number;
}

const DEFAULTS: KnownPointsOptions = { most: 500_000, mostOfSpace: 20_000, maxAgeMs: 600_000 };

/** The points of a server that exist, as far as this process knows, by space: a collection and a namespace. */
export class KnownPoints {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #options: KnownPointsOptions;
  /** When the server had each of them, the earliest first. */
  readonly #spaces: LRUCache<string, { seenAt: Map<string, number> }>;

  constructor(clock: Pick<Clock, 'monotonic'>, options: Partial<KnownPointsOptions> = {}) {
    this.#clock = clock;
    this.#options = { ...DEFAULTS, ...options };
    this.#spaces = new LRUCache({ maxSize: this.#options.most, sizeCalculation: ({ seenAt }) => seenAt.size + 1 });
  }

  has(space: string, id: string): boolean {
    return this.#spaces.get(space)?.seenAt.has(id) ?? false;
  }

  /** The IDs that the server should be asked about. */
  unsure(space: string, ids: readonly string[]): string[] {
    const seenAt = this.#spaces.get(space)?.seenAt;
    const oldest = this.#clock.monotonic() - this.#options.maxAgeMs;
    return ids.filter((id) => (seenAt?.get(id) ?? -Infinity) <= oldest);
  }

  /** What the server has of the asked IDs. Of too many IDs, those that were seen first are forgotten. */
  seen(space: string, asked: Iterable<string>, existing: ReadonlySet<string>): void {
    const seenAt = this.#spaces.get(space)?.seenAt ?? new Map<string, number>();
    const now = this.#clock.monotonic();
    for (const id of asked) {
      seenAt.delete(id);
      if (existing.has(id)) seenAt.set(id, now);
    }
    for (const id of seenAt.keys()) {
      if (seenAt.size <= this.#options.mostOfSpace) break;
      seenAt.delete(id);
    }
    // Another object: the cache does not measure the same one again.
    this.#spaces.set(space, { seenAt });
  }

  forget(space: string): void {
    this.#spaces.delete(space);
  }

  forgetAll(): void {
    this.#spaces.clear();
  }
}
