/** The result of a reconcile. A reconcile returns its errors; a thrown error counts as a panic. */
export type ReconcileResult =
  | { readonly kind: 'done' }
  /** Success; requeue the key after this many milliseconds. */
  | { readonly kind: 'requeueAfter'; readonly afterMs: number }
  /** Failed; the key is requeued with backoff, unless the error is a TerminalError. */
  | { readonly kind: 'failed'; readonly error: unknown };

/** An error that a retry cannot fix; the key is reconciled again when the object changes. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

const CONFLICT = 409;

/**
 * Whether another writer changed the object since it was read. This is expected, and a retry reads the object again. Decided by the HTTP
 * status 409, except for `AlreadyExists`, which has the same status but which a retry does not fix.
 */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof Error) || ('reason' in error && error.reason === 'AlreadyExists')) return false;
  const status = 'status' in error ? error.status : 'code' in error ? error.code : undefined;
  return status === CONFLICT;
}
