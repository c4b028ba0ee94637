import type { CallOptions } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { type Json, member } from '../lib/json.ts';
import type { Network } from '../net/dialer.ts';
import { authorize } from './authorization.ts';
import type { CredentialSource } from './docker-config.ts';
import { originOf, type OciReference } from './reference.ts';
import { createTransport, failed, type RegistryResponse, tryParse } from './transport.ts';

interface RegistryRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  /** A path below the repository, or a whole URL of the registry. */
  readonly path: string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: string;
  /** Limit of the body of the response. */
  readonly maxBytes?: number;
}

/**
 * Requests to one repository of a registry. Returns responses with a status below 400, and 404. Throws TEMPER_OCI_UNAUTHORIZED and
 * TEMPER_OCI_FAILED; no error contains a credential or a text of the registry but its error code.
 */
export type RegistryClient = (request: RegistryRequest, op: CallOptions) => Promise<RegistryResponse>;

export interface RegistryClientDeps {
  clock: Clock;
  credentials: CredentialSource;
  network?: Network;
}

/** Errors and small bodies. */
const DEFAULT_MAX_BYTES = 65_536;
export function createRegistryClient(
  reference: OciReference,
  access: 'pull' | 'pull,push',
  deps: RegistryClientDeps,
): RegistryClient {
  const send = createTransport(reference, deps);
  const base = `${originOf(reference)}/v2/${reference.repository}/`;
  let authorization: string | undefined;
  return async ({ method, path, accept, contentType, body, maxBytes = DEFAULT_MAX_BYTES }, op) => {
    const headers = {
      ...(accept === undefined ? {} : { accept }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    };
    const url = /^https?:/.test(path) ? path : `${base}${path}`;
    const request = { method, url, ...(body === undefined ? {} : { body }) };
    const attempt = () =>
      send(
        { ...request, headers: authorization === undefined ? headers : { ...headers, authorization } },
        Math.max(maxBytes, DEFAULT_MAX_BYTES),
        op,
      );
    let response = await attempt();
    if (response.status === 401) {
      const challenge = response.headers['www-authenticate'] ?? '';
      authorization = await authorize(challenge, { reference, access, send, credentials: deps.credentials }, op);
      response = await attempt();
    }
    assertUsable(reference, response);
    return response;
  };
}

function assertUsable(reference: OciReference, { status, body }: RegistryResponse): void {
  if (status < 400 || status === 404) return;
  const said = `${status}${errorCodeIn(body)}`;
  if (status === 401 || status === 403)
    throw new TemperError(
      'TEMPER_OCI_UNAUTHORIZED',
      `${reference.host} answered ${said} for ${reference.repository}; check the credential in the Docker configuration file and its permissions`,
    );
  const next = status === 429 || status >= 500 ? 'repeat the command later' : 'check the reference';
  throw failed(reference, `it answered ${said}; ${next}`);
}

/** Only a code: the texts of a registry may repeat what it received. */
function errorCodeIn(body: string): string {
  const [first] = listAt(tryParse(body), 'errors');
  const code = member(first, 'code');
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? ` ${code}` : '';
}

function listAt(value: Json | undefined, key: string): readonly Json[] {
  const list = member(value, key);
  return Array.isArray(list) ? list : [];
}
