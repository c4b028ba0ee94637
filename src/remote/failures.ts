import { isErrorCode, type ErrorCode } from '../lib/error-codes.ts';
import { TemperError, type Retry } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { type Json, member } from '../lib/json.ts';

const MESSAGE = 2_000;
/** A wait longer than this is not for a call to sit out, in milliseconds. */
const LONGEST_WAIT = 15_000;
const FIRST_WAIT = 100;
const LARGEST_BACKOFF = 5_000;
/** What stands between pod and gateway answers with these. */
const BUSY: ReadonlySet<number> = new Set([502, 503, 504]);
/** Refusals that may pass, if they say when. */
const WHEN_SAID: ReadonlySet<number> = new Set([403, 429]);

/** What the gateway said instead of an answer. `details.status` is the status. */
export function refusalOf(status: number, body: Json | undefined, retryAfter: string | undefined): TemperError {
  const error = member(body, 'error');
  const said = member(error, 'message');
  const message = typeof said === 'string' ? printable(said, MESSAGE) : `the gateway answered with status ${status}`;
  return new TemperError(codeOf(status, member(error, 'code')), message, {
    retry: retryOf(status, member(error, 'retryAfterMilliseconds'), retryAfter),
    details: { status },
  });
}

function codeOf(status: number, code: Json | undefined): ErrorCode {
  if (isErrorCode(code)) return code;
  if (BUSY.has(status) || status === 429) return 'TEMPER_GATEWAY_UNAVAILABLE';
  return status === 401 || status === 403 ? 'TEMPER_GATEWAY_REFUSED' : 'TEMPER_GATEWAY_ANSWER';
}

function retryOf(status: number, milliseconds: Json | undefined, retryAfter: string | undefined): Retry {
  if (!BUSY.has(status) && !WHEN_SAID.has(status)) return 'never';
  if (typeof milliseconds === 'number' && milliseconds >= 0) return milliseconds;
  if (retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  return BUSY.has(status) ? 'backoff' : 'never';
}

/** What kept a request from being answered at all. */
export function connectionFailure(cause: unknown): TemperError {
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

/** Milliseconds to wait before the next attempt; nothing when there should be none. `chance` from 0 to 1 spreads the callers. */
export function waitBefore(failure: TemperError, attempt: number, chance: number): number | undefined {
  const { retry } = failure;
  if (retry === 'never') return undefined;
  const backoff = Math.min(LARGEST_BACKOFF, FIRST_WAIT * 2 ** attempt) * (0.5 + chance / 2);
  if (retry === 'backoff') return backoff;
  return retry > LONGEST_WAIT ? undefined : Math.max(retry, backoff / 10);
}
