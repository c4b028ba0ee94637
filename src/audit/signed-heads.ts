import { createPublicKey, verify } from 'node:crypto';
import { sha256 } from '../lib/canonical.ts';
import { isJsonObject, type Json, parseUntrustedJson } from '../lib/json.ts';
import type { HeadVerifier, SignedHead } from './stream-chain.ts';

/** Members of the ConfigMap with the signed heads. */
export const HEADS_MEMBER = 'heads.json';
export const PUBLIC_KEYS_MEMBER = 'keys.pem';

/** Undefined for a text without signed heads. */
export function parseSignedHeads(text: string): SignedHead[] | undefined {
  let value: Json | undefined;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const isReadable = Array.isArray(value) && value.length > 0 && value.every(isSignedHead);
  return isReadable ? (value as unknown as SignedHead[]) : undefined;
}

/** Ed25519 public keys in PEM verify the heads that their private keys signed. */
export function headVerifier(publicKeys: readonly string[]): HeadVerifier {
  const known = new Map(publicKeys.map((pem) => [headKeyId(pem), createPublicKey(pem)]));
  return {
    verify(text, id, signature) {
      const key = known.get(id);
      return key !== undefined && verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64'));
    },
  };
}

export function headKeyId(pem: string): string {
  return sha256(pem).slice('sha256:'.length, 'sha256:'.length + 16);
}

export function splitPublicKeys(text: string): string[] {
  return text.match(/-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----\n?/g) ?? [];
}

export function isSignedHead(value: Json): boolean {
  if (!isJsonObject(value)) return false;
  const { sequence, records, digest, time, recordedAt = '', key, signature } = value;
  const isText = [digest, time, recordedAt, key, signature].every((member) => typeof member === 'string');
  return isText && Number.isSafeInteger(sequence) && Number.isSafeInteger(records);
}
