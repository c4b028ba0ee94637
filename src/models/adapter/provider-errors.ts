import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError, type Retry } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, member, type Json } from '../../lib/json.ts';
import { errorClassOf, type ProviderFailure } from './error-classes.ts';

const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_TIMEOUT',
] satisfies ErrorCode[]);

/** The typed error of a provider's failure. */
export function providerError(provider: string, failure: ProviderFailure, cause?: unknown): TemperError {
  const code = errorClassOf(failure);
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
