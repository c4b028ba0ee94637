/** Hashes and message authentication codes for guest code. The runner computes them without a host call. */
import type * as NodeCrypto from 'node:crypto';

const ALGORITHMS: ReadonlySet<string> = new Set(['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512']);

interface HashRequest {
  algorithm: string;
  /** Absent: a plain hash. */
  key?: HashPart;
  parts: HashPart[];
  encoding: string;
}

type HashPart = [text: string, encoding: string];

/** The response for the guest: a digest, or an error message. */
export type HashResult = { ok: true; digest: string } | { ok: false; message: string };

/** The bootstrap writes `text`, but guest code can influence it, so every member is checked. */
export function hash(text: string): HashResult {
  const request = parse(text);
  if (typeof request === 'string') return { ok: false, message: request };
  const crypto = loadCrypto();
  const hasher =
    request.key === undefined
      ? crypto.createHash(request.algorithm)
      : crypto.createHmac(request.algorithm, bytesOf(request.key));
  for (const part of request.parts) hasher.update(bytesOf(part));
  return { ok: true, digest: hasher.digest(request.encoding as 'hex') };
}

/** The UUID (version 4) number `count` of a job. Unpredictable for all who do not know the seed. */
export function seededUuid(seed: string, count: number): string {
  const bytes = loadCrypto().createHash('sha256').update(`${seed}/${count}`).digest();
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const digits = bytes.toString('hex');
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20, 32),
  ].join('-');
}

/** Loads the module only for a job that needs it, because it is the largest one that a runner can load. */
function loadCrypto(): typeof NodeCrypto {
  return process.getBuiltinModule('node:crypto');
}

function bytesOf([text, encoding]: HashPart): Buffer {
  return Buffer.from(text, encoding as BufferEncoding);
}

function parse(text: string): HashRequest | string {
  const request: unknown = JSON.parse(text);
  if (typeof request !== 'object' || request === null) return 'the request is not an object';
  const { algorithm, key, parts, encoding } = request as Partial<Record<keyof HashRequest, unknown>>;
  const name = typeof algorithm === 'string' ? algorithm.toLowerCase().replace('-', '') : '';
  if (!ALGORITHMS.has(name)) return `unknown algorithm; use one of ${[...ALGORITHMS].join(', ')}`;
  if (encoding !== 'hex' && encoding !== 'base64' && encoding !== 'base64url') {
    return 'digest() gives hex, base64 or base64url text';
  }
  if (!Array.isArray(parts) || !parts.every(isHashPart) || !(key === undefined || isHashPart(key))) {
    return 'data must be text or bytes, in utf8, hex or base64';
  }
  return { algorithm: name, parts, encoding, ...(key === undefined ? {} : { key }) };
}

function isHashPart(value: unknown): value is HashPart {
  return (
    Array.isArray(value) &&
    typeof value[0] === 'string' &&
    ['utf8', 'hex', 'base64', 'latin1'].includes(String(value[1]))
  );
}
