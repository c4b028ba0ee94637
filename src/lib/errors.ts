import type { ErrorCode } from './error-codes.ts';

/**
 * Whether the same call may succeed later. `never`: only after a change; `backoff`: yes, with a longer wait each time; a number: yes, after that
 * many milliseconds.
 */
export type Retry = 'never' | 'backoff' | number;

export interface TemperErrorOptions {
  cause?: unknown;
  retry?: Retry;
  /** Machine-readable facts: JSON values only, no secrets. */
  details?: Record<string, unknown>;
}

/** The error class of the whole project. Callers branch on `code`, never on the message. */
export class TemperError extends Error {
  override readonly name = 'TemperError';
  readonly code: ErrorCode;
  readonly retry: Retry;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: TemperErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retry = options.retry ?? 'never';
    this.details = options.details ?? {};
  }
}

export function isTemperError(error: unknown, code?: ErrorCode): error is TemperError {
  return error instanceof TemperError && (code === undefined || error.code === code);
}

/** The message of any thrown value, cut to `limit` characters. Reads `message` only once, since it may be a getter. */
export function messageOf(error: unknown, limit = 4_096): string {
  const text = error instanceof Error ? error.message : typeof error === 'string' ? error : 'an unknown failure';
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

export function hasErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
