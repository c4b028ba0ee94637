import { createHash } from 'node:crypto';
import type { Tier } from '../../api/v1alpha1/common.ts';
import { canonicalJson, type Digest, sha256 } from '../../lib/canonical.ts';

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const HASH_CHARACTERS = 26;

/**
 * Name of the object that holds a tool: `<tool>-<26 base 32 characters of sha256(tier, owner, digest)>`.
 * 130 bits of the hash rule out collisions; the tool name in front is for readability.
 */
export function objectName(tool: string, tier: Tier, owner: string, digest: Digest): string {
  const hash = createHash('sha256')
    .update(canonicalJson([tier, owner, digest]))
    .digest();
  let bits = 0;
  let value = 0;
  let text = '';
  for (const byte of hash) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5 && text.length < HASH_CHARACTERS) {
      bits -= 5;
      text += BASE32[(value >>> bits) & 31];
      value &= (1 << bits) - 1;
    }
  }
  return `${tool.replaceAll('_', '-')}-${text}`;
}

/** A record-path segment for an untrusted name: the name itself when it is plain, otherwise its digest. */
export function pathSegment(name: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/.test(name)) return name;
  return `x-${sha256(name).slice('sha256:'.length)}`;
}

export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length);
}
