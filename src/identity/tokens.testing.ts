import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import type { PublishedKeys } from './cluster-keys.ts';

const ISSUER = 'https://kubernetes.default.svc';

/** The signing key of a cluster, and tokens signed with it in the format of an API server. */
export interface TestSigner {
  published: PublishedKeys;
  privateKey: CryptoKey;
  sign(claims: JWTPayload, header?: { kid?: string; alg?: string }): Promise<string>;
}

export async function testSigner(kid = 'one'): Promise<TestSigner> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' };
  return {
    published: { issuer: ISSUER, keys: { keys: [jwk] } },
    privateKey,
    sign: (claims, header = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid, ...header }).sign(privateKey),
  };
}

/** The claims of a valid token of an agent pod, issued at `seconds` since 1970. */
export function podClaims(seconds: number): JWTPayload & { 'kubernetes.io': Record<string, unknown> } {
  return {
    iss: ISSUER,
    aud: ['temper-gateway'],
    sub: 'system:serviceaccount:team-a:temper-agent',
    iat: seconds,
    nbf: seconds,
    exp: seconds + 3_600,
    jti: 'token-1',
    'kubernetes.io': {
      namespace: 'team-a',
      pod: { name: 'scout-1', uid: 'pod-uid-1' },
      serviceaccount: { name: 'temper-agent', uid: 'sa-uid' },
    },
  };
}

/** The claims of a valid token of a user, issued at `seconds` since 1970. */
export function userClaims(seconds: number): JWTPayload & { 'kubernetes.io': Record<string, unknown> } {
  return {
    ...podClaims(seconds),
    sub: 'system:serviceaccount:team-a:temper-users',
    'kubernetes.io': { namespace: 'team-a', serviceaccount: { name: 'temper-users', uid: 'sa-uid-2' } },
  };
}
