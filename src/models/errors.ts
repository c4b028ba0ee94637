import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError, type Retry } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isJsonObject, member, type Json } from '../lib/json.ts';

/** What a provider said when it refused, taken out of an SDK error or an in-band error event. */
export interface ProviderFailure {
  status?: number;
  type?: string;
  code?: string;
  message: string;
  /** Milliseconds the provider asked to wait. */
  retryAfter?: number;
}

type Kind = (failure: ProviderFailure) => boolean;

const named =
  (...names: string[]): Kind =>
  (failure) =>
    names.includes(failure.code ?? '') || names.includes(failure.type ?? '');
const status =
  (...numbers: number[]): Kind =>
  (failure) =>
    numbers.includes(failure.status ?? 0);
/** Some refusals differ from others by their words alone: there is no code to decide by. */
const says =
  (...phrases: string[]): Kind =>
  (failure) => {
    const message = failure.message.toLowerCase();
    return phrases.some((phrase) => message.includes(phrase));
  };
const any =
  (...kinds: Kind[]): Kind =>
  (failure) =>
    kinds.some((kind) => kind(failure));

/** In order: the narrow classes before the statuses they share with wider ones. */
const CLASSES: readonly (readonly [code: ErrorCode, kind: Kind])[] = [
  ['TEMPER_REPLAY_NO_MATCH', named('TEMPER_REPLAY_NO_MATCH')],
  [
    'TEMPER_MODEL_BILLING',
    any(
      status(402),
      named('insufficient_quota', 'billing_error', 'billing_not_active', 'billing_hard_limit_reached'),
      says('credit balance is too low', 'exceeded your current quota'),
    ),
  ],
  [
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
    any(
      named('context_length_exceeded', 'string_above_max_length', 'model_context_window_exceeded'),
      says('prompt is too long', 'maximum context length', 'context window', 'context length'),
    ),
  ],
  [
    'TEMPER_MODEL_NOT_FOUND',
    any(named('model_not_found', 'not_found_error', 'unknown_model', 'invalid_model'), status(404)),
  ],
  [
    'TEMPER_MODEL_UNAUTHORIZED',
    any(named('authentication_error', 'permission_error', 'invalid_api_key'), status(401, 403)),
  ],
  [
    'TEMPER_MODEL_RATE_LIMITED',
    any(named('rate_limit_error', 'rate_limit_exceeded', 'too_many_requests', 'RESOURCE_EXHAUSTED'), status(429)),
  ],
  ['TEMPER_MODEL_TIMEOUT', any(named('timeout_error', 'timeout', 'request_timeout'), status(408, 504))],
  [
    'TEMPER_MODEL_OVERLOADED',
    any(
      named('overloaded_error', 'server_error', 'api_error', 'internal_error', 'server_is_overloaded', 'UNAVAILABLE'),
      (failure) => (failure.status ?? 0) >= 500,
    ),
  ],
];

const WORTH_REPEATING: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_TIMEOUT',
] satisfies ErrorCode[]);

/** The typed error of a provider's refusal. What is in no class is a request or an answer that cannot be read. */
export function providerError(provider: string, failure: ProviderFailure, cause?: unknown): TemperError {
  const code = CLASSES.find(([, kind]) => kind(failure))?.[0] ?? 'TEMPER_MODEL_FORMAT';
  const retry: Retry = WORTH_REPEATING.has(code) ? (failure.retryAfter ?? 'backoff') : 'never';
  const answered = failure.status === undefined ? 'reported' : `answered ${failure.status}`;
  // A refused key is sometimes echoed in the refusal, so nothing of that text is repeated.
  const words =
    code === 'TEMPER_MODEL_UNAUTHORIZED' ? 'the key was refused; renew it' : printable(failure.message, 500);
  return new TemperError(code, `provider "${provider}" ${answered}: ${words}`, {
    retry,
    cause,
    details: { provider, ...(failure.status === undefined ? {} : { status: failure.status }) },
  });
}

/** An answer that breaks the wire format. `retry` is for a connection that was lost on the way. */
export function formatError(provider: string, what: string, retry: Retry = 'never', cause?: unknown): TemperError {
  return new TemperError('TEMPER_MODEL_FORMAT', `provider "${provider}" ${what}`, {
    retry,
    cause,
    details: { provider },
  });
}

/** The failure inside an error object of a body or a stream: `{type?, code?, message?}`; `code` may be an HTTP status. */
export function failureOf(error: Json | undefined): ProviderFailure {
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

/** The error of a body that came with status 200 and holds nothing but an error. */
export function inBandError(provider: string, body: Json): TemperError | undefined {
  const error = member(body, 'error');
  const typed = member(body, 'type') === 'error';
  if (!isJsonObject(error) && typeof error !== 'string' && !typed) return undefined;
  return providerError(provider, failureOf(error ?? body));
}
