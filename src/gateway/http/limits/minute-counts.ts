import { LRUCache } from 'lru-cache';
import { entries } from '../../../lib/caches/lru-entries.ts';
import type { Clock } from '../../../lib/clock.ts';

const MINUTE_MS = 60_000;
/** Counted keys. An evicted key starts again. */
const CACHE_SIZE = 10_000;

/** Counts what happens for a key within a minute, so that a log names a cause without a line for each time. */
export class MinuteCounts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #counts = new LRUCache<string, { since: number; count: number }>(entries(CACHE_SIZE));

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The number of times within the current minute of the key, this one included. */
  add(key: string): number {
    const now = this.#clock.monotonic();
    const known = this.#counts.get(key);
    if (known !== undefined && now - known.since < MINUTE_MS) return (known.count += 1);
    this.#counts.set(key, { since: now, count: 1 });
    return 1;
  }
}

/** Whether the count deserves a line: the first time, the tenth, the hundredth, and so on. */
export function isMilestone(count: number): boolean {
  return Number.isInteger(Math.log10(count));
}
