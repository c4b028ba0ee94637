import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { messageOf, type Retry, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** `err_code` values of the JetStream API. */
const API_ERRORS = {
  insufficientResources: 10_023,
  insufficientStorage: 10_047,
  messageTooLarge: 10_054,
  wrongLastSequence: 10_071,
  storeFailed: 10_077,
  maximumConsumers: 10_026,
  wrongLastSequenceUnknown: 10_164,
  consumerNotFound: 10_014,
  streamNotFound: 10_059,
  messageNotFound: 10_037,
} as const;

/** Another writer changed the subject since the revision was read. */
export function isConflict(error: unknown): boolean {
  return isApiError(error, API_ERRORS.wrongLastSequence, API_ERRORS.wrongLastSequenceUnknown);
}

export function isConsumerMissing(error: unknown): boolean {
  return isApiError(error, API_ERRORS.consumerNotFound);
}

export function isStreamMissing(error: unknown): boolean {
  return isApiError(error, API_ERRORS.streamNotFound);
}

export function isMessageMissing(error: unknown): boolean {
  if (isApiError(error, API_ERRORS.messageNotFound)) return true;
  // Batched direct reads report it as status 404.
  return error instanceof JetStreamError && 'code' in error && error.code === 404;
}

/** A batched direct read matches more subjects than the server answers at once. */
export function isTooManyResults(error: unknown): boolean {
  return error instanceof JetStreamError && 'code' in error && error.code === 413;
}

/** Converts any error of the NATS client or server to a TemperError. `doing` is the prefix of the message. */
export function natsError(error: unknown, doing: string): TemperError {
  if (error instanceof TemperError) return error;
  const { code, retry } = classify(error);
  return new TemperError(code, `${doing}: ${printable(messageOf(error), 400)}`, { cause: error, retry });
}

function classify(error: unknown): { code: ErrorCode; retry: Retry } {
  if (isApiError(error, API_ERRORS.messageTooLarge)) return { code: 'TEMPER_BUS_TOO_LARGE', retry: 'never' };
  if (isApiError(error, API_ERRORS.maximumConsumers)) return { code: 'TEMPER_BUS_CONSUMER_LIMIT', retry: 'backoff' };
  if (isApiError(error, API_ERRORS.storeFailed, API_ERRORS.insufficientResources, API_ERRORS.insufficientStorage)) {
    return { code: 'TEMPER_BUS_FULL', retry: 'backoff' };
  }
  if (isAuthorizationError(error)) return { code: 'TEMPER_BUS_UNAUTHORIZED', retry: 'backoff' };
  if (error instanceof errors.InvalidArgumentError || error instanceof errors.InvalidSubjectError) {
    return { code: 'TEMPER_INTERNAL', retry: 'never' };
  }
  // The client reports "not enabled" for a write that nothing responds to: the stream has no leader at the moment.
  const cause = error instanceof Error ? error.cause : undefined;
  if (isNatsError(error) || cause instanceof errors.RequestError || cause instanceof errors.NoRespondersError)
    return { code: 'TEMPER_BUS_UNAVAILABLE', retry: 'backoff' };
  return { code: 'TEMPER_INTERNAL', retry: 'never' };
}

function isAuthorizationError(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].some(
    (one) => one instanceof errors.AuthorizationError || one instanceof errors.PermissionViolationError,
  );
}

function isNatsError(error: unknown): boolean {
  return [
    JetStreamApiError,
    JetStreamError,
    errors.ClosedConnectionError,
    errors.ConnectionError,
    errors.DrainingConnectionError,
    errors.NoRespondersError,
    errors.ProtocolError,
    errors.RequestError,
    errors.TimeoutError,
  ].some((kind) => error instanceof kind);
}

function isApiError(error: unknown, ...codes: number[]): boolean {
  return error instanceof JetStreamApiError && codes.includes(error.code);
}
