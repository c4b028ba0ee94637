/** Hashes and message authentication codes for guest code, made in the runner: they need nothing of the host. */
import type * as NodeCrypto from 'node:crypto';

const ALGORITHMS: ReadonlySet<string> = new Set(['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512']);

interface HashRequest {
  algorithm: string;
  /** Absent: a plain hash. */
  key?: Part;
  parts: Part[];
  encoding: string;
}

type Part = [text: string, encoding: string];

/** The answer for the guest: a digest, or what is wrong with the request. */
export type HashAnswer = { ok: true; digest: string } | { ok: false; message: string };

/** `text` was made by our bootstrap, and is still the guest's: every member is checked. */
export function hash(text: string): HashAnswer {
  const request = parse(text);
  if (typeof request === 'string') return { ok: false, message: request };
  const crypto = loadCrypto();
  const worker =
    request.key === undefined
      ? crypto.createHash(request.algorithm)
      : crypto.createHmac(request.algorithm, bytesOf(request.key));
  for (const part of request.parts) worker.update(bytesOf(part));
  return { ok: true, digest: worker.digest(request.encoding as 'hex') };
}

export function randomUuid(): string {
  return loadCrypto().randomUUID();
}

/** Only when a job needs it: it is the largest thing a runner could hold. */
function loadCrypto(): typeof NodeCrypto {
  return process.getBuiltinModule('node:crypto');
}

function bytesOf([text, encoding]: Part): Buffer {
  return Buffer.from(text, encoding as BufferEncoding);
}

function parse(text: string): HashRequest | string {
  const request = JSON.parse(text) as Partial<Record<keyof HashRequest, unknown>>;
  const { algorithm, key, parts, encoding } = request;
  const name = typeof algorithm === 'string' ? algorithm.toLowerCase().replace('-', '') : '';
  if (!ALGORITHMS.has(name)) return `no such algorithm; use one of ${[...ALGORITHMS].join(', ')}`;
  if (encoding !== 'hex' && encoding !== 'base64' && encoding !== 'base64url') {
    return 'digest() gives hex, base64 or base64url text';
  }
  if (!Array.isArray(parts) || !parts.every(isPart) || !(key === undefined || isPart(key))) {
    return 'data must be text or bytes, in utf8, hex or base64';
  }
  return { algorithm: name, parts, encoding, ...(key === undefined ? {} : { key }) };
}

function isPart(value: unknown): value is Part {
  return (
    Array.isArray(value) &&
    typeof value[0] === 'string' &&
    ['utf8', 'hex', 'base64', 'latin1'].includes(String(value[1]))
  );
}
