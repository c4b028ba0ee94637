/** Concurrent NATS requests of one user request. */
const MAX_CONCURRENT = 16;

/** Maps all items with limited concurrency; the results keep the order of the items. */
export async function mapInBatches<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += MAX_CONCURRENT) {
    results.push(...(await Promise.all(items.slice(from, from + MAX_CONCURRENT).map(work))));
  }
  return results;
}
