/** What a reconcile says of itself. An error is returned; what it throws is counted as a panic. */
export type Outcome =
  | { readonly kind: 'done' }
  /** Nothing failed; look again after so many milliseconds. */
  | { readonly kind: 'again'; readonly after: number }
  /** Failed: tried again, later each time. A TerminalError is not. */
  | { readonly kind: 'failed'; readonly error: unknown };

/** A failure no retry mends; only a change of the object does. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

const CONFLICT = 409;

/**
 * Somebody wrote the object meanwhile: to be expected, and mended by reading it again. Told by the HTTP status alone, but for the one
 * other thing that has the same status: a name that is taken stays taken.
 */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof Error) || ('reason' in error && error.reason === 'AlreadyExists')) return false;
  const status = 'status' in error ? error.status : 'code' in error ? error.code : undefined;
  return status === CONFLICT;
}
