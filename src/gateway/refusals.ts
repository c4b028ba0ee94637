import type { FastifyError } from 'fastify';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, messageOf, type Retry } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { WireError } from '../remote/wire.ts';

/** A refusal as it goes over the wire. */
export interface Refusal {
  status: number;
  body: WireError;
}

/** HTTP statuses of codes. What is not named is 503 where it may pass, else 422: understood, and not done. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  TEMPER_REQUEST_INVALID: 400,
  TEMPER_SESSION_INVALID: 400,
  TEMPER_TOKEN_INVALID: 401,
  TEMPER_TOKEN_AUDIENCE: 401,
  TEMPER_POD_UNKNOWN: 403,
  TEMPER_POD_ADDRESS: 403,
  TEMPER_POD_NOT_BOUND: 403,
  TEMPER_POD_BOUND_TWICE: 403,
  TEMPER_LEASE_INVALID: 403,
  TEMPER_POLICY_DENIED: 403,
  TEMPER_NOT_FOUND: 404,
  TEMPER_AGENT_SUSPENDED: 409,
  TEMPER_STATE_CORRUPT: 409,
  TEMPER_LEASE_EXPIRED: 410,
  TEMPER_REQUEST_TOO_LARGE: 413,
  TEMPER_BUS_TOO_LARGE: 413,
  TEMPER_RATE_LIMITED: 429,
  TEMPER_BUS_FULL: 429,
  TEMPER_QUOTA_EXCEEDED: 429,
  TEMPER_MODEL_RATE_LIMITED: 429,
  TEMPER_INTERNAL: 500,
  TEMPER_OVERLOADED: 503,
  TEMPER_POD_STARTING: 503,
  TEMPER_BUS_UNAVAILABLE: 503,
  TEMPER_BUS_UNAUTHORIZED: 503,
  TEMPER_BUS_UNSUPPORTED: 503,
  TEMPER_MODEL_OVERLOADED: 503,
  TEMPER_MODEL_UNAVAILABLE: 503,
  TEMPER_TIMEOUT: 504,
};

/** What of a message goes out. */
const MESSAGE_CHARACTERS = 2_000;

export function refusal(code: ErrorCode, message: string, retry: Retry = 'never'): Refusal {
  const error = { code, message: printable(message, MESSAGE_CHARACTERS) };
  return {
    status: STATUSES[code] ?? (retry === 'never' ? 422 : 503),
    body: { error: typeof retry === 'number' ? { ...error, retryAfterMilliseconds: retry } : error },
  };
}

/** Any failure in the one form. Of a defect nothing is told but that it is one: the log has it. */
export function refusalOf(error: unknown): Refusal {
  if (isTemperError(error)) {
    if (error.code === 'TEMPER_INTERNAL') return defect();
    return refusal(error.code, error.message, error.retry);
  }
  return isFastifyError(error) ? ofFastify(error) : defect();
}

function defect(): Refusal {
  return refusal('TEMPER_INTERNAL', 'the gateway failed; its log has more under the correlation id of this answer');
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && ('validation' in error || ('code' in error && 'statusCode' in error));
}

function ofFastify(error: FastifyError): Refusal {
  const { statusCode = 500 } = error;
  if (error.validation !== undefined) return refusal('TEMPER_REQUEST_INVALID', firstFault(error));
  if (statusCode === 413) return refusal('TEMPER_REQUEST_TOO_LARGE', 'the body is larger than this route takes');
  if (statusCode === 503) return refusal('TEMPER_OVERLOADED', 'the gateway cannot take more at the moment', 1_000);
  if (statusCode < 400 || statusCode >= 500) return defect();
  return { ...refusal('TEMPER_REQUEST_INVALID', messageOf(error, 300)), status: statusCode };
}

/** Names the place and the rule; the value that broke it is not repeated. */
function firstFault({ validation = [], validationContext = 'body' }: FastifyError): string {
  const fault = validation[0];
  if (fault === undefined) return `the ${validationContext} breaks its schema`;
  const place = `${validationContext}${fault.instancePath.replaceAll('/', '.')}`;
  return `${place} ${fault.message ?? 'breaks its schema'}`;
}
