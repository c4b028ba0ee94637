/** A long session blocks no other one, and the memory of a pod of the default class holds so many histories. */
export const DEFAULT_CONCURRENCY = 4;
export const MAX_CONCURRENCY = 16;

/** The number of sessions that an agent works on at the same time. */
export function concurrencyOf(configured: number | undefined): number {
  return configured ?? DEFAULT_CONCURRENCY;
}
