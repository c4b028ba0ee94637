import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError, type Retry } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, member, type Json } from '../../lib/json.ts';

/** A provider's error, extracted from an SDK error or an in-band error event. */
export interface ProviderFailure {
  status?: number;
  type?: string;
  code?: string;
  message: string;
  /** `Retry-After` of the provider in milliseconds. */
  retryAfterMs?: number;
}

type FailurePredicate = (failure: ProviderFailure) => boolean;

const hasCode =
  (...names: string[]): FailurePredicate =>
  (failure) =>
    names.includes(failure.code ?? '') || names.includes(failure.type ?? '');
const hasStatus =
  (...numbers: number[]): FailurePredicate =>
  (failure) =>
    numbers.includes(failure.status ?? 0);
/** For errors that have no code and differ by their message only. */
const messageIncludes =
  (...phrases: string[]): FailurePredicate =>
  (failure) => {
    const message = failure.message.toLowerCase();
    return phrases.some((phrase) => message.includes(phrase));
  };
const anyOf =
  (...kinds: FailurePredicate[]): FailurePredicate =>
  (failure) =>
    kinds.some((kind) => kind(failure));

/**
 * The first matching row decides, so narrow classes stand before wider ones that share an HTTP status. `hasCode` compares the
 * error's `code` or `type`, `hasStatus` its HTTP status, `messageIncludes` its lower-cased message; `anyOf` needs one match.
 */
const CLASSIFICATION: readonly (readonly [code: ErrorCode, kind: FailurePredicate])[] = [
  ['TEMPER_REPLAY_NO_MATCH', hasCode('TEMPER_REPLAY_NO_MATCH')],
  [
    'TEMPER_MODEL_BILLING',
    anyOf(
      hasStatus(402),
      hasCode('insufficient_quota', 'billing_error', 'billing_not_active', 'billing_hard_limit_reached'),
      messageIncludes('credit balance is too low', 'exceeded your current quota'),
    ),
  ],
  [
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
    anyOf(
      hasCode('context_length_exceeded', 'string_above_max_length', 'model_context_window_exceeded'),
      messageIncludes('prompt is too long', 'maximum context length', 'context window', 'context length'),
    ),
  ],
  [
    'TEMPER_MODEL_NOT_FOUND',
    anyOf(hasCode('model_not_found', 'not_found_error', 'unknown_model', 'invalid_model'), hasStatus(404)),
  ],
  [
    'TEMPER_MODEL_UNAUTHORIZED',
    anyOf(hasCode('authentication_error', 'permission_error', 'invalid_api_key'), hasStatus(401, 403)),
  ],
  [
    'TEMPER_MODEL_RATE_LIMITED',
    anyOf(
      hasCode('rate_limit_error', 'rate_limit_exceeded', 'too_many_requests', 'RESOURCE_EXHAUSTED'),
      hasStatus(429),
    ),
  ],
  ['TEMPER_MODEL_TIMEOUT', anyOf(hasCode('timeout_error', 'timeout', 'request_timeout'), hasStatus(408, 504))],
  [
    'TEMPER_MODEL_OVERLOADED',
    anyOf(
      hasCode('overloaded_error', 'server_error', 'api_error', 'internal_error', 'server_is_overloaded', 'UNAVAILABLE'),
      (failure) => (failure.status ?? 0) >= 500,
    ),
  ],
];

const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_TIMEOUT',
] satisfies ErrorCode[]);

/** The typed error of a provider's failure. A failure of no class is a malformed request or answer: TEMPER_MODEL_FORMAT. */
export function providerError(provider: string, failure: ProviderFailure, cause?: unknown): TemperError {
  const code = CLASSIFICATION.find(([, kind]) => kind(failure))?.[0] ?? 'TEMPER_MODEL_FORMAT';
  const retry: Retry = RETRYABLE.has(code) ? (failure.retryAfterMs ?? 'backoff') : 'never';
  const answered = failure.status === undefined ? 'reported' : `answered ${failure.status}`;
  // Some providers repeat the rejected key in the message, so the message is not used.
  const reason =
    code === 'TEMPER_MODEL_UNAUTHORIZED' ? 'the key was rejected; renew it' : printable(failure.message, 500);
  return new TemperError(code, `provider "${provider}" ${answered}: ${reason}`, {
    retry,
    cause,
    details: { provider, ...(failure.status === undefined ? {} : { status: failure.status }) },
  });
}

/** The error of an answer that violates the wire format. Pass `retry` when the connection was lost during the answer. */
export function formatError(provider: string, what: string, retry: Retry = 'never', cause?: unknown): TemperError {
  return new TemperError('TEMPER_MODEL_FORMAT', `provider "${provider}" ${what}`, {
    retry,
    cause,
    details: { provider },
  });
}

/** Reads an error object of a body or a stream: `{type?, code?, message?}`; `code` may be an HTTP status. */
export function parseFailure(error: Json | undefined): ProviderFailure {
  if (typeof error === 'string') return { message: error };
  const code = member(error, 'code');
  const type = member(error, 'type') ?? member(error, 'status');
  const message = member(error, 'message');
  const failure: ProviderFailure = { message: typeof message === 'string' ? message : 'no message was given' };
  if (typeof type === 'string') failure.type = type;
  if (typeof code === 'string') failure.code = code;
  const numeric = Number(code);
  if (Number.isInteger(numeric) && numeric >= 400 && numeric <= 599) failure.status = numeric;
  return failure;
}

/** The error in a body with status 200; undefined when the body is not an error. */
export function inBandError(provider: string, body: Json): TemperError | undefined {
  const error = member(body, 'error');
  const typed = member(body, 'type') === 'error';
  if (!isJsonObject(error) && typeof error !== 'string' && !typed) return undefined;
  return providerError(provider, parseFailure(error ?? body));
}
