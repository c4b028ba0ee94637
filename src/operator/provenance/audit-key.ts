import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { headKeyId, headVerifier, splitPublicKeys } from '../../audit/signed-heads.ts';
import type { HeadKeys } from '../../audit/stream-chain.ts';
import type { SecretData } from '../pki/release-secrets.ts';

const LIFETIME_MS = 90 * 24 * 3_600_000;
/** Public keys that stay: records are kept for 90 days, and a key signs for 90 days. */
const MAX_PUBLIC_KEYS = 4;

/** Names of the members of the Secret. */
const PRIVATE = 'signing.key';
const PUBLIC = 'verification.keys';
const SINCE = 'since';

/** Ed25519 keys of signed heads: the private key of today, and the public keys of all heads that are kept. */
export interface AuditKeys {
  privateKey: string;
  /** PEM, newest first. */
  publicKeys: readonly string[];
  since: Date;
}

/** The next state; the same object when nothing changes. */
export function rotateAuditKeys(keys: AuditKeys | undefined, now: Date): AuditKeys {
  if (keys !== undefined && now.getTime() - keys.since.getTime() < LIFETIME_MS) return keys;
  const pair = generateKeyPairSync('ed25519');
  const privateKey = pair.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const publicKey = pair.publicKey.export({ type: 'spki', format: 'pem' });
  return { privateKey, publicKeys: [publicKey, ...(keys?.publicKeys ?? [])].slice(0, MAX_PUBLIC_KEYS), since: now };
}

/** The keys of a Secret; undefined for a Secret without them, in which a new pair begins. */
export function auditKeysIn(data: SecretData | undefined, now: Date): AuditKeys | undefined {
  const { [PRIVATE]: privateKey, [PUBLIC]: publicKeys, [SINCE]: text = '' } = data ?? {};
  if (!privateKey || !publicKeys) return undefined;
  const since = new Date(text);
  const isReadable = !Number.isNaN(since.getTime()) && since <= now;
  return { privateKey, publicKeys: splitPublicKeys(publicKeys), since: isReadable ? since : now };
}

export function auditKeyData({ privateKey, publicKeys, since }: AuditKeys): Record<string, string> {
  return { [PRIVATE]: privateKey, [PUBLIC]: publicKeys.join(''), [SINCE]: since.toISOString() };
}

export function headKeysOf({ privateKey, publicKeys }: AuditKeys): HeadKeys {
  const current = createPrivateKey(privateKey);
  const currentId = headKeyId(createPublicKey(current).export({ type: 'spki', format: 'pem' }));
  return {
    ...headVerifier(publicKeys),
    publicKeys,
    sign: (text) => ({ key: currentId, signature: sign(null, Buffer.from(text), current).toString('base64') }),
  };
}

/** Can the private key be read, and is its public key among the published ones? */
export function hasUsableKey({ privateKey, publicKeys }: AuditKeys): boolean {
  try {
    return publicKeys.includes(createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }) as string);
  } catch {
    return false;
  }
}
