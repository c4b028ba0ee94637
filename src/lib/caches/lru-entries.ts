/**
 * The limit of an LRU cache, in entries. `max` alone would reserve the memory of all entries when the cache is created, 28 bytes for each;
 * the limits are for what hostile callers can do, and most caches stay far below them.
 */
export function entries(limit: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: limit, sizeCalculation: () => 1 };
}
