import { isTemperError } from '../../lib/errors.ts';
import { ApiError } from '../client/kube-client.ts';

/** The result of a reconcile. An error that a reconcile throws is its result `failed`, unless it is a defect of the program. */
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

/** What the API server, another service or a rule answers. Every other error that a reconcile throws is a defect and counts as a panic. */
export function isExpected(error: unknown): boolean {
  return error instanceof ApiError || error instanceof TerminalError || isTemperError(error) || isConflict(error);
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
