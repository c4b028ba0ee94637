/** The allowlists of request and response headers. Any other header could control a proxy, a cache or the connection itself. */
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

const SENT: ReadonlySet<string> = new Set([
  'accept',
  'accept-language',
  'authorization',
  'content-type',
  'if-modified-since',
  'if-none-match',
  'user-agent',
  'x-api-key',
  'x-request-id',
]);

/** Credentials for one origin; dropped on a redirect to another. */
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'x-api-key']);

const RETURNED: ReadonlySet<string> = new Set([
  'cache-control',
  'content-language',
  'content-type',
  'date',
  'etag',
  'expires',
  'last-modified',
  'link',
  'retry-after',
  'x-request-id',
]);

const MAX_VALUE = 8_192;

/** The request headers with lower-case names. Throws TEMPER_FETCH_DENIED for a header that is not allowed or contains a line break. */
export function headersToSend(
  headers: Readonly<Record<string, string>>,
  additional: ReadonlySet<string>,
): Record<string, string> {
  const sent: Record<string, string> = { 'user-agent': 'temper' };
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    if (!SENT.has(key) && !additional.has(key)) {
      throw new TemperError(
        'TEMPER_FETCH_DENIED',
        `the header "${printable(name, 64)}" may not be sent; allowed are ${[...SENT].join(', ')}`,
      );
    }
    if (value.length > MAX_VALUE || !/^[\t\x20-\x7e]*$/.test(value)) {
      throw new TemperError('TEMPER_FETCH_DENIED', `the header ${key} is too long or contains a forbidden character`);
    }
    sent[key] = value;
  }
  return { ...sent, 'accept-encoding': 'gzip, deflate, br, zstd' };
}

export function withoutCredentials(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !CREDENTIALS.has(name)));
}

export function headersToReturn(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  additional: ReadonlySet<string>,
): Record<string, string> {
  const returned: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    const passes = RETURNED.has(key) || additional.has(key) || key.startsWith('x-ratelimit-');
    if (!passes || value === undefined) continue;
    returned[key] = (typeof value === 'string' ? value : value.join(', ')).slice(0, MAX_VALUE);
  }
  return returned;
}
