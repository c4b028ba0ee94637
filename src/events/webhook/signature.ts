import { createHmac, timingSafeEqual } from 'node:crypto';

/*
 * The signatures of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over `id.timestamp.body`, in Base64 after `v1,`; keys
 * are `whsec_` with 24 to 64 bytes in Base64.
 */

export interface WebhookHeaders {
  /** The same for a delivery that its sender repeats. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly signatures: readonly Buffer[];
}

const ID = /^[A-Za-z0-9_.:-]{1,128}$/;
const TIMESTAMP = /^[0-9]{1,12}$/;
const SIGNATURE = /^v1,([A-Za-z0-9+/]{43}=)$/;
const KEY = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/;
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;
const MAX_SIGNATURES = 8;
/** A trigger has a current key, and perhaps the one before it. */
const MAX_KEYS = 4;

type Header = string | readonly string[] | undefined;

/** Undefined when a header is absent or not well-formed. Signatures of another version are left out. */
export function parseWebhookHeaders(headers: Readonly<Record<string, Header>>): WebhookHeaders | undefined {
  const [id, timestamp, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => headers[name],
  );
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signature !== 'string') return undefined;
  if (!ID.test(id) || !TIMESTAMP.test(timestamp)) return undefined;
  const signatures = signature
    .split(' ', MAX_SIGNATURES)
    .flatMap((text) => Buffer.from(SIGNATURE.exec(text)?.[1] ?? '', 'base64'))
    .filter(({ length }) => length > 0);
  return { id, timestamp: Number(timestamp), signatures };
}

/** The keys in the text of a Secret, one per line; lines that are no key are left out. */
export function parseWebhookKeys(text: string): Buffer[] {
  return text
    .split('\n', MAX_KEYS)
    .map((line) => Buffer.from(KEY.exec(line.trim())?.[1] ?? '', 'base64'))
    .filter(({ length }) => length >= MIN_KEY_BYTES && length <= MAX_KEY_BYTES);
}

/** Compares each signature with each key in constant time. */
export function isSigned(
  keys: readonly Uint8Array[],
  { id, timestamp, signatures }: WebhookHeaders,
  body: string,
): boolean {
  let isGenuine = false;
  for (const key of keys) {
    const expected = digestOf(key, id, timestamp, body);
    for (const signature of signatures)
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) isGenuine = true;
  }
  return isGenuine;
}

function digestOf(key: Uint8Array, id: string, timestamp: number, body: string): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
}
