import { TemperError } from '../../lib/errors.ts';

/** No published embedding model has more. */
const MAX_DIMENSIONS = 8_192;

/**
 * The vectors of an embedder with length 1, so that their product is their cosine. Throws TEMPER_MODEL_FORMAT for vectors of
 * different dimensions, or with values that are no numbers.
 */
export function unitVectors(vectors: readonly Float32Array[]): Float32Array[] {
  const dimensions = vectors[0]?.length ?? 0;
  const isValid = vectors.every((vector) => vector.length === dimensions && vector.every(Number.isFinite));
  if (!isValid || dimensions === 0 || dimensions > MAX_DIMENSIONS)
    throw new TemperError(
      'TEMPER_MODEL_FORMAT',
      `the embedder sent vectors that are not finite numbers of one length from 1 to ${MAX_DIMENSIONS}`,
    );
  return vectors.map((vector) => {
    const length = Math.hypot(...vector);
    return length === 0 ? vector : vector.map((value) => value / length);
  });
}
