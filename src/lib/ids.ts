import { randomInt } from 'node:crypto';
import { ulid } from 'ulid';

/** The source of identifiers. Tests replace it with a predictable one. */
export interface IdGenerator {
  /** Sortable by time, unguessable, lower-case letters and digits: `<prefix>-<26 characters>`. */
  next(prefix: string): string;
}

/**
 * ULIDs in lower case. `now` returns epoch milliseconds, `random` a number of at least 0 and below 1. Identifiers of one millisecond
 * have no order: the monotonic form increments the last identifier, so each would reveal the next.
 */
export function createIds(now: () => number, random: () => number): IdGenerator {
  return { next: (prefix) => `${prefix}-${ulid(now(), random).toLowerCase()}` };
}

export const ulids: IdGenerator = createIds(Date.now, () => randomInt(256) / 256);
