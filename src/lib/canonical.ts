import { createHash } from 'node:crypto';
import type { Json } from './json.ts';
import { printable } from './printable.ts';

/** `sha256:` and 64 lower-case hex digits. Callers always compare the full text, never a prefix. */
export type Digest = `sha256:${string}`;

const DIGEST_FORM = /^sha256:[0-9a-f]{64}$/;

export function isDigest(text: unknown): text is Digest {
  return typeof text === 'string' && DIGEST_FORM.test(text);
}

/** The beginning of a digest, for messages only; an untrusted text may be of any form. */
export function shortDigest(digest: string): string {
  return printable(digest.slice(0, 'sha256:'.length + 8), 15);
}

/**
 * The canonical text of a JSON value, RFC 8785: members sorted by UTF-16 code units, ECMAScript numbers, no white space.
 * `undefined` members are omitted. Throws RangeError for NaN and Infinity, which JSON cannot represent, and for lone surrogates, which
 * RFC 8785 forbids.
 */
export function canonicalJson(value: Json): string {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError('canonical JSON cannot represent NaN or Infinity');
    return JSON.stringify(value);
  }
  if (typeof value === 'string') return canonicalString(value);
  if (value === null || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const child = value[key];
    if (child !== undefined) members.push(`${canonicalString(key)}:${canonicalJson(child)}`);
  }
  return `{${members.join(',')}}`;
}

function canonicalString(text: string): string {
  if (!text.isWellFormed()) throw new RangeError('canonical JSON cannot represent lone surrogates');
  return JSON.stringify(text);
}

export function sha256(data: string | Uint8Array): Digest {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`;
}

/** Digest of the canonical form of a JSON value. */
export function digestOf(value: Json): Digest {
  return sha256(canonicalJson(value));
}

/** Undefined for a value without a canonical form. */
export function tryDigestOf(value: Json): Digest | undefined {
  try {
    return digestOf(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
