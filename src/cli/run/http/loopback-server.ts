import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { isTemperError, messageOf, TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { CONNECTION_TIMEOUTS } from '../../../net/connection-limits.ts';

export interface LoopbackServerOptions {
  /** The option that names the port, such as `--webhooks`. */
  readonly option: string;
  /** On the loopback interface; 0: any free port. */
  readonly port: number;
  /** What the server serves, for messages: `a request to a webhook`. */
  readonly what: string;
  /** Answers a request. A thrown TemperError becomes the answer. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** An error that is not the sender's. */
  readonly onError: (message: string) => void;
}

export interface LoopbackServer extends AsyncDisposable {
  /** Without a path. */
  readonly url: string;
}

const HOST = '127.0.0.1';
const MAX_CONNECTIONS = 100;
const STATUSES: Partial<Record<ErrorCode, number>> = {
  TEMPER_REQUEST_INVALID: 400,
  TEMPER_TOKEN_INVALID: 401,
  TEMPER_NOT_FOUND: 404,
  TEMPER_REQUEST_TOO_LARGE: 413,
  TEMPER_RATE_LIMITED: 429,
  TEMPER_BUS_FULL: 429,
};

/** Serves HTTP on the loopback interface. Throws TEMPER_USAGE for a port that is in use or may not be used. */
export async function startLoopbackServer(options: LoopbackServerOptions): Promise<LoopbackServer> {
  const server = createServer(CONNECTION_TIMEOUTS, (request, response) => {
    options.answer(request, response).catch((error: unknown) => refuse(response, error, options));
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, options);
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      // Connections that send their request slowly do not delay the end of the process.
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function refuse(response: ServerResponse, error: unknown, { what, onError }: LoopbackServerOptions): void {
  // The sender went away, or the headers of its answer are sent.
  if (response.destroyed || response.headersSent) return void response.destroy();
  const status = isTemperError(error) ? STATUSES[error.code] : undefined;
  if (status === undefined || !isTemperError(error)) {
    onError(`${what} failed: ${printable(messageOf(error, 500))}`);
    const internal = { code: 'TEMPER_INTERNAL', message: 'the request failed; the output of temper run says why' };
    return sendJson(response, 500, { error: internal });
  }
  const { code, message, retry } = error;
  // What is left of the body is not read.
  if (status === 413) response.setHeader('connection', 'close');
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  const shown = { code, message, ...(typeof retry === 'number' ? { retryAfterMs: retry } : {}) };
  sendJson(response, status, { error: shown });
}

async function listen(server: Server, { option, port }: LoopbackServerOptions): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, HOST, resolve);
    });
  } catch (cause) {
    const reason = printable(messageOf(cause, 200));
    throw new TemperError('TEMPER_USAGE', `${option} ${port}: ${reason}; name another port`, { cause });
  }
}
