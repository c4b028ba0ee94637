import type { ErrorCode } from './error-codes.ts';

/** May the same call succeed later? `never`: not without a change; `backoff`: yes, wait longer each time; a number: after that many milliseconds. */
export type Retry = 'never' | 'backoff' | number;

export interface TemperErrorOptions {
  cause?: unknown;
  retry?: Retry;
  /** Facts for machines; JSON values only, nothing secret. */
  details?: Record<string, unknown>;
}

/** The one error of the project. Callers decide by `code`, never by message. */
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

/** A message for any thrown value, bounded, read without running its getters more than once. */
export function messageOf(error: unknown, limit = 4_096): string {
  const text = error instanceof Error ? error.message : typeof error === 'string' ? error : 'an unknown failure';
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

export function hasErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
