import type { CallOptions } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { type Json, jsonExcess, parseUntrustedJson } from '../lib/json.ts';
import type { Network } from '../net/dialer.ts';
import { createSafeFetch, type FetchRequest } from '../net/fetch.ts';
import { namedServerRules } from '../net/targets.ts';
import type { OciReference } from './reference.ts';

export interface RegistryResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One request to a registry or to its token service. Throws TEMPER_OCI_FAILED. */
export type SendRequest = (request: FetchRequest, maxBytes: number, op: CallOptions) => Promise<RegistryResponse>;

/** What the body of a request may have, whatever the limit of its response. */
const MAX_REQUEST_BYTES = 1_048_576;
const HEADERS: ReadonlySet<string> = new Set([
  'docker-content-digest',
  'location',
  'oci-subject-processed',
  'www-authenticate',
]);
const JSON_LIMITS = { values: 20_000, depth: 16 };

export function createTransport(
  reference: OciReference,
  { clock, network }: { clock: Clock; network?: Network },
): SendRequest {
  const rules = namedServerRules(reference);
  return (request, maxBytes, op) => {
    const fetch = createSafeFetch({
      clock,
      maxBodyBytes: request.body === undefined ? maxBytes : MAX_REQUEST_BYTES,
      returnedHeaders: HEADERS,
      ...(network === undefined ? {} : { network }),
    });
    return fetch(request, rules, op).catch((error: unknown) => {
      const isDenied = isTemperError(error, 'TEMPER_FETCH_DENIED');
      const next = isDenied ? '' : '; check the host and the network, then repeat the command';
      throw failed(reference, `${messageOf(error, 300)}${next}`, error);
    });
  };
}

/** A JSON text of a registry; undefined for anything else, and for one that would cost much memory. */
export function tryParse(text: string): Json | undefined {
  try {
    return jsonExcess(text, JSON_LIMITS) === undefined ? parseUntrustedJson(text) : undefined;
  } catch {
    return undefined;
  }
}

export function failed({ host }: Pick<OciReference, 'host'>, problem: string, cause?: unknown): TemperError {
  const options = cause === undefined ? {} : { cause };
  return new TemperError('TEMPER_OCI_FAILED', `registry ${host}: ${problem}`, { retry: 'backoff', ...options });
}
