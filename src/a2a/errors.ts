import {
  A2A_ERROR_CODE,
  A2AError,
  JsonRpcTransportError,
  PushNotificationNotSupportedError,
  TaskNotFoundError,
} from '@a2a-js/sdk/errors';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

const MAX_MESSAGE_CHARACTERS = 1_000;
const INVALID: readonly ErrorCode[] = ['TEMPER_REQUEST_INVALID', 'TEMPER_SESSION_INVALID', 'TEMPER_BUS_TOO_LARGE'];

/** An error of a JSON-RPC response. */
export function rpcError(code: number, message: string): A2AError {
  const error = { code, message: printable(message, MAX_MESSAGE_CHARACTERS) };
  return new JsonRpcTransportError({ jsonrpc: '2.0', id: null, error });
}

/** The parameters are not valid: names the field, the rule and the next step. */
export function invalidParameters(message: string): A2AError {
  return rpcError(A2A_ERROR_CODE.INVALID_PARAMS, message);
}

export function noPushNotifications(): A2AError {
  return new PushNotificationNotSupportedError(
    'push notifications are not supported: follow the task with a stream, or read it again',
  );
}

/** Any error as one of the protocol. An internal error exposes no details: only the log has them. */
export function toProtocolError(error: unknown, log: (error: unknown) => void): Error {
  if (error instanceof A2AError) return error;
  if (isTemperError(error) && error.code !== 'TEMPER_INTERNAL') {
    const { code, message } = error;
    if (code === 'TEMPER_NOT_FOUND') return new TaskNotFoundError(printable(message, MAX_MESSAGE_CHARACTERS));
    const text = `${message} (${code})`;
    return INVALID.includes(code) ? invalidParameters(text) : rpcError(A2A_ERROR_CODE.INTERNAL_ERROR, text);
  }
  log(error);
  return rpcError(A2A_ERROR_CODE.INTERNAL_ERROR, 'internal error of the gateway');
}
