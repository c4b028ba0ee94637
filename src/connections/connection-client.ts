import type { CallOptions } from '../lib/call-options.ts';
import { type Json, parseUntrustedJson, textAt } from '../lib/json.ts';
import { createConnectionTransport, type Protocol, type ConnectionOptions } from './connection-transport.ts';
import type { ReachedConnection } from './connection.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly url: string;
  readonly body?: Json;
}

export interface ApiResponse {
  readonly status: number;
  readonly body: Json;
  /** What a refusal says, without the credential. */
  readonly message: () => string;
}

/** Sends JSON requests over the transport of one connection. Throws as the transport does. */
export type ConnectionClient = (request: ApiRequest, op: CallOptions) => Promise<ApiResponse>;

const JSON_API: Protocol = {
  authorizationOf: (credential) => `Bearer ${credential}`,
  messageIn: (bytes) => messageIn(jsonOf(bytes)),
};

export function createConnectionClient(connection: ReachedConnection, options: ConnectionOptions): ConnectionClient {
  const send = createConnectionTransport(connection, JSON_API, options);
  return async ({ method, url, body }, op) => {
    const headers = { accept: 'application/json' };
    const request = {
      url,
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const { status, bytes, message } = await send(request, op);
    return { status, body: jsonOf(bytes), message };
  };
}

function messageIn(body: Json): string {
  const text = textAt(body, ['message']);
  return text === '' ? textAt(body, ['error']) : text;
}

/** Null for anything but JSON, such as the login page of a proxy. */
function jsonOf(bytes: Buffer): Json {
  const text = bytes.toString('utf8');
  if (text === '') return null;
  try {
    return parseUntrustedJson(text);
  } catch {
    return null;
  }
}
