import type { FastifyError } from 'fastify';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, messageOf, type Retry } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ErrorBody } from '../../gateway-api/pod-api.ts';

/** An error response: HTTP status and body. */
export interface ErrorResponse {
  status: number;
  body: ErrorBody;
}

/** HTTP status by error code. Other codes map to 503 when the error is retryable, else to 422. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  TEMPER_REQUEST_INVALID: 400,
  TEMPER_SESSION_INVALID: 400,
  TEMPER_TOKEN_INVALID: 401,
  TEMPER_TOKEN_AUDIENCE: 401,
  TEMPER_ORIGIN_DENIED: 403,
  TEMPER_POD_UNKNOWN: 403,
  TEMPER_POD_ADDRESS_MISMATCH: 403,
  TEMPER_POD_NOT_BOUND: 403,
  TEMPER_POD_BINDING_CONFLICT: 403,
  TEMPER_DELIVERY_TOKEN_INVALID: 403,
  TEMPER_POLICY_DENIED: 403,
  TEMPER_NOT_FOUND: 404,
  TEMPER_AGENT_SUSPENDED: 409,
  TEMPER_DELIVERY_LOST: 409,
  TEMPER_SESSION_BUSY: 409,
  TEMPER_TOOL_AUDIT_IN_PROGRESS: 409,
  TEMPER_SESSION_CLOSED: 410,
  TEMPER_STATE_CORRUPT: 409,
  TEMPER_DELIVERY_TOKEN_EXPIRED: 410,
  TEMPER_REQUEST_TOO_LARGE: 413,
  TEMPER_BUS_TOO_LARGE: 413,
  TEMPER_STORAGE_LIMIT_EXCEEDED: 413,
  TEMPER_RATE_LIMITED: 429,
  TEMPER_BUS_FULL: 429,
  TEMPER_QUOTA_EXCEEDED: 429,
  TEMPER_MODEL_RATE_LIMITED: 429,
  TEMPER_INTERNAL: 500,
  TEMPER_OVERLOADED: 503,
  TEMPER_POD_STARTING: 503,
  TEMPER_BUS_UNAVAILABLE: 503,
  TEMPER_BUS_CONSUMER_LIMIT: 503,
  TEMPER_BUS_UNAUTHORIZED: 503,
  TEMPER_BUS_UNSUPPORTED: 503,
  TEMPER_MODEL_OVERLOADED: 503,
  TEMPER_MODEL_UNREACHABLE: 503,
  TEMPER_MODEL_UNAVAILABLE: 503,
  TEMPER_TIMEOUT: 504,
};

/** Limit of a message in an error response. */
const MAX_MESSAGE_CHARACTERS = 2_000;

function errorResponse(code: ErrorCode, message: string, retry: Retry = 'never'): ErrorResponse {
  const error = { code, message: printable(message, MAX_MESSAGE_CHARACTERS) };
  return {
    status: STATUSES[code] ?? (retry === 'never' ? 422 : 503),
    body: { error: typeof retry === 'number' ? { ...error, retryAfterMs: retry } : error },
  };
}

/** Converts any error. An internal error exposes no details: only the log has them. */
export function errorResponseOf(error: unknown): ErrorResponse {
  if (isTemperError(error)) {
    if (error.code === 'TEMPER_INTERNAL') return internalError();
    return errorResponse(error.code, error.message, error.retry);
  }
  return isFastifyError(error) ? fromFastify(error) : internalError();
}

function internalError(): ErrorResponse {
  return errorResponse(
    'TEMPER_INTERNAL',
    'internal error of the gateway; find details in its log by the correlation id of this response',
  );
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && ('validation' in error || ('code' in error && 'statusCode' in error));
}

function fromFastify(error: FastifyError): ErrorResponse {
  const { statusCode = 500 } = error;
  if (error.validation !== undefined) return errorResponse('TEMPER_REQUEST_INVALID', firstViolation(error));
  if (statusCode === 413) return errorResponse('TEMPER_REQUEST_TOO_LARGE', 'the body exceeds the limit of this route');
  if (statusCode === 503) return errorResponse('TEMPER_OVERLOADED', 'the gateway is overloaded', 1_000);
  if (statusCode < 400 || statusCode >= 500) return internalError();
  return { ...errorResponse('TEMPER_REQUEST_INVALID', messageOf(error, 300)), status: statusCode };
}

/** Contains the path and the rule, never the invalid value. */
function firstViolation({ validation = [], validationContext = 'body' }: FastifyError): string {
  const violation = validation[0];
  if (violation === undefined) return `the ${validationContext} does not match its schema`;
  const path = `${validationContext}${violation.instancePath.replaceAll('/', '.')}`;
  return `${path} ${violation.message ?? 'does not match its schema'}`;
}
