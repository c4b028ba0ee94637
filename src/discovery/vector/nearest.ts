import { compareText } from '../lexical/compare-text.ts';
import type { VectorEntry, VectorHit } from './port.ts';

/** The entries whose unit vectors are nearest to a unit vector, nearest first, ties by id. */
export function nearest(wanted: Float32Array, known: readonly VectorEntry[], most: number): VectorHit[] {
  const cosines = Float64Array.from(known, ({ vector }) => product(wanted, vector));
  const least = cosines.length > most ? (cosines.toSorted()[cosines.length - most] ?? 0) : -Infinity;
  return known
    .flatMap(({ id }, position) => {
      const cosine = cosines[position] ?? 0;
      return cosine >= least ? [{ id, cosine }] : [];
    })
    .sort((a, b) => b.cosine - a.cosine || compareText(a.id, b.id))
    .slice(0, most);
}

/** The cosine of two vectors of length 1. */
function product(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
}
