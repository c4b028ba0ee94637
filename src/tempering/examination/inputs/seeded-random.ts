import { type Digest, sha256 } from '../../../lib/canonical.ts';

/** Pseudo-random numbers that repeat for one seed, so that an examination of one digest repeats. */
export interface SeededRandom {
  /** An integer from 0 to `limit` - 1. */
  integer(limit: number): number;
  pick<T>(items: readonly T[]): T | undefined;
  /** A copy in another order. */
  shuffled<T>(items: readonly T[]): T[];
}

/** The generator mulberry32, seeded by a digest and a purpose. */
export function seededRandom(digest: Digest, purpose: string): SeededRandom {
  let state = Number.parseInt(sha256(`${digest} ${purpose}`).slice('sha256:'.length, 'sha256:'.length + 8), 16);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const integer = (limit: number): number => Math.floor(next() * limit);
  return {
    integer,
    pick: (items) => items[integer(items.length)],
    shuffled(items) {
      const copy = [...items];
      for (let index = copy.length - 1; index > 0; index -= 1) {
        const other = integer(index + 1);
        [copy[index], copy[other]] = [copy[other] as (typeof copy)[number], copy[index] as (typeof copy)[number]];
      }
      return copy;
    },
  };
}
