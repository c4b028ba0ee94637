import { isErrorCode, type ErrorCode } from '../lib/error-codes.ts';
import { TemperError, type Retry } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { type Json, member } from '../lib/json.ts';

const MAX_MESSAGE = 2_000;
/** Milliseconds. A call with a longer `Retry-After` fails at once. */
const MAX_WAIT_MS = 15_000;
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;
/** Transient statuses, also of proxies between pod and gateway. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** Retried only if the response states a delay. */
const RETRY_AFTER_STATUSES: ReadonlySet<number> = new Set([403, 429]);

/** The error of an HTTP error response. `details.status` is the status. */
export function errorFromResponse(status: number, body: Json | undefined, retryAfter: string | undefined): TemperError {
  const error = member(body, 'error');
  const text = member(error, 'message');
  const message =
    typeof text === 'string' ? printable(text, MAX_MESSAGE) : `the gateway responded with status ${status}`;
  return new TemperError(codeOf(status, member(error, 'code')), message, {
    retry: retryOf(status, member(error, 'retryAfterMs'), retryAfter),
    details: { status },
  });
}

function codeOf(status: number, code: Json | undefined): ErrorCode {
  if (isErrorCode(code)) return code;
  if (TRANSIENT_STATUSES.has(status) || status === 429) return 'TEMPER_GATEWAY_UNAVAILABLE';
  return status === 401 || status === 403 ? 'TEMPER_GATEWAY_FORBIDDEN' : 'TEMPER_GATEWAY_BAD_RESPONSE';
}

function retryOf(status: number, milliseconds: Json | undefined, retryAfter: string | undefined): Retry {
  if (!TRANSIENT_STATUSES.has(status) && !RETRY_AFTER_STATUSES.has(status)) return 'never';
  if (typeof milliseconds === 'number' && milliseconds >= 0) return milliseconds;
  if (retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  return TRANSIENT_STATUSES.has(status) ? 'backoff' : 'never';
}

/** The error of a request that got no response. */
export function connectionError(cause: unknown): TemperError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  if (/^ERR_TLS|CERT|ISSUER|SIGNATURE/.test(code)) {
    return new TemperError('TEMPER_GATEWAY_UNTRUSTED', `the gateway could not be verified (${printable(code, 64)})`, {
      retry: 'backoff',
      cause,
    });
  }
  return new TemperError('TEMPER_GATEWAY_UNAVAILABLE', `the gateway cannot be reached (${printable(code, 64)})`, {
    retry: 'backoff',
    cause,
  });
}

/**
 * Milliseconds before the next attempt; undefined when the call must not be retried. `chance`, from 0 to 1, is the jitter: thousands of pods get
 * the same `Retry-After` of a gateway that is overloaded, and must not come back together. Of such a gateway each further refusal doubles the wait.
 */
export function retryDelayMs(failure: TemperError, attempt: number, chance: number): number | undefined {
  const { retry } = failure;
  if (retry === 'never') return undefined;
  const backoff = Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** attempt) * (0.5 + chance / 2);
  if (retry === 'backoff') return backoff;
  if (retry > MAX_WAIT_MS) return undefined;
  const isTransient = TRANSIENT_STATUSES.has(Number(failure.details['status']));
  return Math.max(retry * (1 + chance / 2), isTransient ? backoff : backoff / 10);
}
