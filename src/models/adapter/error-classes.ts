import type { ErrorCode } from '../../lib/error-codes.ts';

/** A provider's error, extracted from an SDK error or an in-band error event. */
export interface ProviderFailure {
  status?: number;
  type?: string;
  code?: string;
  message: string;
  /** `Retry-After` of the provider in milliseconds. */
  retryAfterMs?: number;
  /** The request as text. Absent for an error event inside an answer. */
  sentText?: () => string;
}

/** A failure belongs to the class when one of the members matches. */
interface ErrorClass {
  error: ErrorCode;
  statuses?: readonly number[];
  /** This HTTP status and every higher one. */
  minStatus?: number;
  /** Values of the error's `code` or `type`. */
  codes?: readonly string[];
  /** Parts of the lower-cased message of a rejected request, for errors that have no code of their own. */
  phrases?: readonly string[];
  /** Phrases of an error of the account, so no request may cause it: see `isReported`. */
  accountPhrases?: readonly string[];
}

/** The first matching row decides, so narrow classes stand before wider ones that share an HTTP status. */
const CLASSES: readonly ErrorClass[] = [
  { error: 'TEMPER_REPLAY_NO_MATCH', codes: ['TEMPER_REPLAY_NO_MATCH'] },
  {
    error: 'TEMPER_MODEL_BILLING',
    statuses: [402],
    codes: ['insufficient_quota', 'billing_error', 'billing_not_active', 'billing_hard_limit_reached'],
    accountPhrases: ['your credit balance is too low', 'exceeded your current quota'],
  },
  {
    error: 'TEMPER_MODEL_CONTEXT_OVERFLOW',
    statuses: [413],
    codes: [
      'context_length_exceeded',
      'exceed_context_size_error',
      'model_context_window_exceeded',
      'request_too_large',
      'string_above_max_length',
    ],
    phrases: [
      'prompt is too long',
      'input is too long',
      'input token count',
      'maximum context length',
      'context window',
      'context length',
      'context limit',
      'context size',
    ],
  },
  {
    error: 'TEMPER_MODEL_NOT_FOUND',
    statuses: [404],
    codes: ['model_not_found', 'not_found_error', 'unknown_model', 'invalid_model'],
  },
  {
    error: 'TEMPER_MODEL_UNAUTHORIZED',
    statuses: [401, 403],
    codes: ['authentication_error', 'permission_error', 'invalid_api_key'],
  },
  {
    error: 'TEMPER_MODEL_RATE_LIMITED',
    statuses: [429],
    codes: ['rate_limit_error', 'rate_limit_exceeded', 'too_many_requests', 'RESOURCE_EXHAUSTED'],
  },
  {
    error: 'TEMPER_MODEL_TIMEOUT',
    statuses: [408, 504],
    codes: ['timeout_error', 'timeout', 'request_timeout'],
  },
  {
    error: 'TEMPER_MODEL_OVERLOADED',
    minStatus: 500,
    codes: ['overloaded_error', 'server_error', 'api_error', 'internal_error', 'server_is_overloaded', 'UNAVAILABLE'],
  },
];

/** The code of a failure. A failure of no class is a malformed request or answer: TEMPER_MODEL_FORMAT. */
export function errorClassOf(failure: ProviderFailure): ErrorCode {
  return CLASSES.find((row) => matches(row, failure))?.error ?? 'TEMPER_MODEL_FORMAT';
}

function matches(row: ErrorClass, failure: ProviderFailure): boolean {
  const { status = 0, code = '', type = '' } = failure;
  const { statuses = [], minStatus = Number.POSITIVE_INFINITY, codes = [] } = row;
  return (
    statuses.includes(status) ||
    status >= minStatus ||
    codes.includes(code) ||
    codes.includes(type) ||
    hasPhrase(row, failure)
  );
}

function hasPhrase({ phrases = [], accountPhrases = [] }: ErrorClass, failure: ProviderFailure): boolean {
  const message = failure.message.toLowerCase();
  const isOfThisRequest = isOfRequest(failure.status ?? 0);
  return (
    (isOfThisRequest && phrases.some((phrase) => message.includes(phrase))) ||
    accountPhrases.some((phrase) => isReported(phrase, message, failure))
  );
}

/** A rejected request, or an error event inside an answer, which has no status. The words of other errors, such as 429, do not concern its length. */
function isOfRequest(status: number): boolean {
  return status === 0 || status === 400 || status === 413 || status === 422;
}

/**
 * Whether the provider itself says the phrase. Servers repeat parts of a rejected request in the message. So the phrase needs a status that
 * concerns the account, or begins the message as in Anthropic's status 400, and its letters must not occur in the request.
 */
function isReported(phrase: string, message: string, { status = 0, sentText }: ProviderFailure): boolean {
  const isAboutAccount = status === 402 || status === 429;
  const isPlausible = isAboutAccount ? message.includes(phrase) : status === 400 && message.startsWith(phrase);
  return isPlausible && sentText !== undefined && !lettersOf(sentText()).includes(lettersOf(phrase));
}

/** Without blanks and punctuation, which a server may change when it repeats a text. */
function lettersOf(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z]/g, '');
}
