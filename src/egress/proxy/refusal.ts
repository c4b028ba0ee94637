import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** HTTP status by error code. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  TEMPER_TOKEN_INVALID: 407,
  TEMPER_TOKEN_AUDIENCE: 407,
  TEMPER_POD_UNKNOWN: 407,
  TEMPER_POD_ADDRESS_MISMATCH: 407,
  TEMPER_POD_NOT_BOUND: 407,
  TEMPER_POD_BINDING_CONFLICT: 407,
  TEMPER_DELIVERY_TOKEN_INVALID: 407,
  TEMPER_DELIVERY_TOKEN_EXPIRED: 407,
  TEMPER_FETCH_DENIED: 403,
  TEMPER_POLICY_DENIED: 403,
  TEMPER_AGENT_SUSPENDED: 403,
  TEMPER_RATE_LIMITED: 429,
  TEMPER_QUOTA_EXCEEDED: 429,
  TEMPER_FETCH_FAILED: 502,
  TEMPER_TIMEOUT: 504,
  TEMPER_INTERNAL: 500,
  TEMPER_POD_STARTING: 503,
  TEMPER_OVERLOADED: 503,
  TEMPER_LEDGER_UNAVAILABLE: 503,
  TEMPER_GATEWAY_UNAVAILABLE: 503,
};
/** What is wrong between proxy and gateway, such as a missing file, is in the log of the proxy only. */
const NO_DECISION = new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'no gateway decides about the connection', {
  retry: 1_000,
});
const MAX_MESSAGE_CHARACTERS = 1_000;
/** A client that does not take its response is cut off. */
const RESPONSE_TIMEOUT_MS = 5_000;

interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** The error as the client and the log get it: no text of the network, and no details of a defect. */
export function publicError(error: unknown): TemperError {
  if (isTemperError(error)) return error;
  if (isNetworkError(error)) return new TemperError('TEMPER_FETCH_FAILED', 'the connection to the target broke');
  return new TemperError('TEMPER_INTERNAL', 'internal error of the proxy; its log has the details', { cause: error });
}

/** Answers `CONNECT` on a socket that no parser reads any more. */
export function refuseTunnel(client: Socket, error: TemperError): void {
  const { status, headers, body } = refusalOf(error);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  client.setTimeout(RESPONSE_TIMEOUT_MS, () => client.destroy());
  client.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}\r\n${body}`);
}

export function refuseRequest(response: ServerResponse, error: TemperError): void {
  const { status, headers, body } = refusalOf(error);
  response.socket?.setTimeout(RESPONSE_TIMEOUT_MS);
  response.writeHead(status, headers).end(body);
}

/** HTTP status by error code of Node, for a request that no parser can read. */
const BROKEN: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Closes a connection whose request is not HTTP, too slow or too long. */
export function refuseBroken(error: Error, client: Socket): void {
  if (!client.writable) {
    client.destroy();
    return;
  }
  const status = BROKEN['code' in error ? String(error.code) : ''] ?? '400 Bad Request';
  client.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`, () => client.destroy());
}

function refusalOf(refused: TemperError): Refusal {
  const { code, message, retry } = STATUSES[refused.code] === undefined ? NO_DECISION : refused;
  const status = STATUSES[code] ?? 503;
  const error = { code, message: printable(message, MAX_MESSAGE_CHARACTERS) };
  const body = JSON.stringify({ error: typeof retry === 'number' ? { ...error, retryAfterMs: retry } : error });
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
      ...(status === 407 ? { 'proxy-authenticate': 'Bearer' } : {}),
    },
    body,
  };
}

/** Errors of sockets, of the HTTP parser, and of responses that Node does not send on have a code of these; defects have none. */
function isNetworkError(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(?:E[A-Z]+|HPE_[A-Z_]+|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP_INVALID_STATUS_CODE|ERR_INVALID_CHAR)$/.test(
    code,
  );
}
