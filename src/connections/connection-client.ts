import { readFile } from 'node:fs/promises';
import type { CallOptions } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { type Json, parseUntrustedJson, textAt } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import { readSecretFile } from '../net/secret-file.ts';
import type { Network } from '../net/dialer.ts';
import { createSafeFetch } from '../net/fetch.ts';
import type { TargetRules } from '../net/targets.ts';
import type { Connection } from './connection.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly url: string;
  readonly body?: Json;
}

export interface ApiResponse {
  readonly status: number;
  readonly body: Json;
}

/**
 * Sends JSON requests with the credential of one connection, to its hosts only. Returns a response of any status but 401, 403 and 5xx.
 * Throws TEMPER_CONNECTION_UNAUTHORIZED, and TEMPER_CONNECTION_FAILED, which may be retried. No error contains the credential.
 */
export type ConnectionClient = (request: ApiRequest, op: CallOptions) => Promise<ApiResponse>;

/** Files of a promotion are larger than what a tool may fetch. */
const MAX_BODY_BYTES = 16 * 1_024 * 1_024;
const MAX_MESSAGE = 300;

export function createConnectionClient(
  connection: Connection,
  { clock, network }: { clock: Clock; network?: Network },
): ConnectionClient {
  const rules = rulesOf(connection);
  return async ({ method, url, body }, op) => {
    const credential = await credentialOf(connection);
    const certificateAuthorities = await authoritiesOf(connection);
    const fetch = createSafeFetch({
      clock,
      maxBodyBytes: MAX_BODY_BYTES,
      ...(network === undefined ? {} : { network }),
      ...(certificateAuthorities === undefined ? {} : { certificateAuthorities }),
    });
    const headers = { authorization: `Bearer ${credential}`, accept: 'application/json' };
    const request = {
      url,
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const response = await fetch(request, rules, op).catch((error: unknown) => {
      throw failed(connection, withoutCredential(messageOf(error), credential));
    });
    const parsed = jsonOf(response.body);
    assertUsable(connection, response.status, withoutCredential(messageIn(parsed), credential));
    return { status: response.status, body: parsed };
  };
}

function rulesOf({ hosts, private: isPrivate }: Connection): TargetRules {
  const names = hosts.map((host) => host.slice(0, host.lastIndexOf(':')));
  return {
    ports: hosts.map((host) => Number(host.slice(host.lastIndexOf(':') + 1))),
    hostDenialReason: (host, port) =>
      hosts.includes(`${host}:${port}`) ? undefined : 'it is not a host of the connection',
    ...(isPrivate === true ? { privateHosts: new Set(names) } : {}),
  };
}

async function credentialOf({ name, credentialFile }: Connection): Promise<string> {
  const found = await readSecretFile(credentialFile);
  if ('secret' in found) return found.secret;
  throw new TemperError(
    'TEMPER_CONNECTION_UNAUTHORIZED',
    `connection "${name}" has no credential: ${credentialFile} ${found.problem}`,
  );
}

async function authoritiesOf({ name, caFile }: Connection): Promise<string[] | undefined> {
  if (caFile === undefined) return undefined;
  try {
    return [await readFile(caFile, 'utf8')];
  } catch (error) {
    throw new TemperError(
      'TEMPER_CONNECTION_FAILED',
      `connection "${name}": caFile cannot be read: ${messageOf(error, MAX_MESSAGE)}`,
    );
  }
}

function assertUsable(connection: Connection, status: number, message: string): void {
  const said = `answered ${status}${message === '' ? '' : `: ${message}`}`;
  if (status === 401 || status === 403) {
    throw new TemperError(
      'TEMPER_CONNECTION_UNAUTHORIZED',
      `connection "${connection.name}": the server ${said}; check the token and its permissions`,
    );
  }
  if (status === 429 || status >= 500) throw failed(connection, `the server ${said}`);
}

function failed({ name }: Connection, problem: string): TemperError {
  return new TemperError('TEMPER_CONNECTION_FAILED', `connection "${name}": ${problem}`, { retry: 'backoff' });
}

/** A server may repeat what it received. */
function withoutCredential(text: string, credential: string): string {
  return printable(text.replaceAll(credential, '[credential]'), MAX_MESSAGE);
}

function messageIn(body: Json): string {
  const text = textAt(body, ['message']);
  return text === '' ? textAt(body, ['error']) : text;
}

/** Null for anything but JSON, such as the login page of a proxy. */
function jsonOf(text: string): Json {
  if (text === '') return null;
  try {
    return parseUntrustedJson(text);
  } catch {
    return null;
  }
}
