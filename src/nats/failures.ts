import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';
import type { ErrorCode } from '../lib/error-codes.ts';
import { messageOf, type Retry, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

/** The server's own numbers. */
const API = {
  insufficientResources: 10_023,
  insufficientStorage: 10_047,
  messageTooLarge: 10_054,
  wrongLastSequence: 10_071,
  storeFailed: 10_077,
  wrongLastSequenceUnknown: 10_164,
  consumerNotFound: 10_014,
  streamNotFound: 10_059,
  messageNotFound: 10_037,
} as const;

/** Another writer was there since the revision was read. */
export function isConflict(error: unknown): boolean {
  return isApi(error, API.wrongLastSequence, API.wrongLastSequenceUnknown);
}

export function isConsumerMissing(error: unknown): boolean {
  return isApi(error, API.consumerNotFound);
}

export function isStreamMissing(error: unknown): boolean {
  return isApi(error, API.streamNotFound);
}

export function isMessageMissing(error: unknown): boolean {
  if (isApi(error, API.messageNotFound)) return true;
  // Reads in pages say it by a status.
  return error instanceof JetStreamError && 'code' in error && error.code === 404;
}

/** Any failure of the client or the server as one of ours. */
export function busFailure(error: unknown, doing: string): TemperError {
  if (error instanceof TemperError) return error;
  const { code, retry } = kindOf(error);
  return new TemperError(code, `${doing}: ${printable(messageOf(error), 400)}`, { cause: error, retry });
}

function kindOf(error: unknown): { code: ErrorCode; retry: Retry } {
  if (isApi(error, API.messageTooLarge)) return { code: 'TEMPER_BUS_TOO_LARGE', retry: 'never' };
  if (isApi(error, API.storeFailed, API.insufficientResources, API.insufficientStorage)) {
    return { code: 'TEMPER_BUS_FULL', retry: 'backoff' };
  }
  if (isRefused(error)) return { code: 'TEMPER_BUS_UNAUTHORIZED', retry: 'backoff' };
  if (error instanceof errors.InvalidArgumentError || error instanceof errors.InvalidSubjectError) {
    return { code: 'TEMPER_INTERNAL', retry: 'never' };
  }
  if (isOfTheBus(error)) return { code: 'TEMPER_BUS_UNAVAILABLE', retry: 'backoff' };
  return { code: 'TEMPER_INTERNAL', retry: 'never' };
}

function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].some(
    (one) => one instanceof errors.AuthorizationError || one instanceof errors.PermissionViolationError,
  );
}

function isOfTheBus(error: unknown): boolean {
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

function isApi(error: unknown, ...codes: number[]): boolean {
  return error instanceof JetStreamApiError && codes.includes(error.code);
}
