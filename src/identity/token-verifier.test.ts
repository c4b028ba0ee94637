import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CryptoKey, exportSPKI, importJWK, type JWTPayload, SignJWT } from 'jose';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { isTemperError } from '../lib/errors.ts';
import { createLogger } from '../telemetry/log.ts';
import { createSecretRedactor } from '../telemetry/secret-redactor.ts';
import { ClusterKeys, type PublishedKeys } from './cluster-keys.ts';
import { TokenVerifier } from './token-verifier.ts';
import { userClaims, podClaims, testSigner } from './tokens.testing.ts';

const log = createLogger({ level: 'silent', destination: { write: () => true }, secrets: createSecretRedactor() });
const signer = await testSigner();

function verifierOf(clock: FakeClock, read: () => Promise<PublishedKeys> = async () => signer.published) {
  const keys = new ClusterKeys({ read, clock, log });
  return new TokenVerifier(keys, clock);
}

function seconds(clock: FakeClock): number {
  return Math.floor(clock.now().getTime() / 1_000);
}

describe('the token verifier', () => {
  it('a pod token identifies its pod, and a user token its namespace', async () => {
    const clock = new FakeClock();
    const verifier = verifierOf(clock);
    assert.deepEqual(await verifier.verify(await signer.sign(podClaims(seconds(clock)))), {
      kind: 'pod',
      namespace: 'team-a',
      podName: 'scout-1',
      podUid: 'pod-uid-1',
    });
    assert.deepEqual(await verifier.verify(await signer.sign(userClaims(seconds(clock)))), {
      kind: 'user',
      namespace: 'team-a',
      tokenId: 'token-1',
    });
  });

  it('a token for the egress proxy identifies a pod to the proxy, and only a token of agent pods does', async () => {
    const clock = new FakeClock();
    const claims = { ...podClaims(seconds(clock)), aud: ['temper-egress'] };
    assert.deepEqual(await verifierOf(clock).verify(await signer.sign(claims)), {
      kind: 'egress-client',
      namespace: 'team-a',
      podName: 'scout-1',
      podUid: 'pod-uid-1',
    });
    const user = { ...userClaims(seconds(clock)), aud: ['temper-egress'] };
    await assert.rejects(verifierOf(clock).verify(await signer.sign(user)), { code: 'TEMPER_TOKEN_INVALID' });
  });

  it('the egress proxy is identified by a token that is bound to its pod', async () => {
    const clock = new FakeClock();
    const claims = podClaims(seconds(clock));
    const account = { sub: 'system:serviceaccount:team-a:temper-egress' };
    const cluster = { ...claims['kubernetes.io'], serviceaccount: { name: 'temper-egress' } };
    const token = await signer.sign({ ...claims, ...account, 'kubernetes.io': cluster });
    assert.equal((await verifierOf(clock).verify(token)).kind, 'egress');
    const unbound = { ...claims, ...account, 'kubernetes.io': { ...cluster, pod: undefined } };
    await assert.rejects(verifierOf(clock).verify(await signer.sign(unbound)), { code: 'TEMPER_TOKEN_INVALID' });
  });

  const inCluster = (change: object) => (claims: ReturnType<typeof podClaims>) => ({
    ...claims,
    'kubernetes.io': { ...claims['kubernetes.io'], ...change },
  });
  const wrong: [string, (claims: ReturnType<typeof podClaims>) => JWTPayload][] = [
    ['is expired', (claims) => ({ ...claims, iat: (claims.iat ?? 0) - 3_700, exp: (claims.iat ?? 0) - 100 })],
    ['is not valid yet', (claims) => ({ ...claims, nbf: (claims.iat ?? 0) + 60 })],
    ['has a lifetime of more than one hour', (claims) => ({ ...claims, exp: (claims.iat ?? 0) + 3_601 })],
    ['has no expiry', ({ exp: _exp, ...claims }) => claims],
    ['has no issue time', ({ iat: _iat, ...claims }) => claims],
    ['has another issuer', (claims) => ({ ...claims, iss: 'https://elsewhere' })],
    ['has no issuer', ({ iss: _iss, ...claims }) => claims],
    ['has the subject of another account', (claims) => ({ ...claims, sub: 'system:serviceaccount:team-a:default' })],
    ['names another account than its subject', inCluster({ serviceaccount: { name: 'temper-users' } })],
    ['names another namespace than its subject', inCluster({ namespace: 'team-b' })],
    ['names no namespace', inCluster({ namespace: undefined })],
    ['is bound to no pod', inCluster({ pod: undefined })],
    ['is bound to a pod without uid', inCluster({ pod: { name: 'scout-1' } })],
    ['has no claims of the cluster', ({ 'kubernetes.io': _cluster, ...claims }) => claims],
    [
      'is a user token bound to a pod',
      (claims) => ({
        ...userClaims(claims.iat ?? 0),
        'kubernetes.io': { ...claims['kubernetes.io'], serviceaccount: { name: 'temper-users' } },
      }),
    ],
    [
      'is of an unknown ServiceAccount',
      (claims) => ({
        ...claims,
        sub: 'system:serviceaccount:team-a:default',
        'kubernetes.io': { ...claims['kubernetes.io'], serviceaccount: { name: 'default' } },
      }),
    ],
  ];
  for (const [what, change] of wrong) {
    it(`a token that ${what} is rejected without a reason`, async () => {
      const clock = new FakeClock();
      const token = await signer.sign(change(podClaims(seconds(clock))));
      await assert.rejects(verifierOf(clock).verify(token), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_TOKEN_INVALID'));
        assert.equal(error.message, 'the token was rejected');
        return true;
      });
    });
  }

  for (const [what, audience] of [
    ['another audience', ['temper-other']],
    ['two audiences', ['temper-gateway', 'temper-egress']],
    ['an audience that begins with the name of the gateway', ['temper-gateway.evil']],
    ['no audience', []],
  ] as const) {
    it(`a token for ${what} is rejected`, async () => {
      const clock = new FakeClock();
      const token = await signer.sign({ ...podClaims(seconds(clock)), aud: [...audience] });
      await assert.rejects(verifierOf(clock).verify(token), (error) => isTemperError(error, 'TEMPER_TOKEN_AUDIENCE'));
    });
  }

  it('a token that is unsigned, altered, or signed with another or a symmetric key is rejected', async () => {
    const clock = new FakeClock();
    const claims = podClaims(seconds(clock));
    const other = await testSigner('one');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;
    const [jwk] = signer.published.keys.keys;
    assert.ok(jwk !== undefined);
    const spki = await exportSPKI((await importJWK(jwk, 'RS256')) as CryptoKey);
    const symmetric = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .sign(new TextEncoder().encode(spki));
    const good = await signer.sign(claims);
    const [header = '', , signature = ''] = good.split('.');
    const altered = `${header}.${Buffer.from(JSON.stringify({ ...claims, jti: 'other' })).toString('base64url')}.${signature}`;
    for (const token of [await other.sign(claims), unsigned, symmetric, altered, '', 'a.b.c', 'x'.repeat(9_000)]) {
      await assert.rejects(verifierOf(clock).verify(token), (error) => isTemperError(error, 'TEMPER_TOKEN_INVALID'));
    }
  });

  it('a token is verified only after its verification, and only while it is valid', async () => {
    const clock = new FakeClock();
    const verifier = verifierOf(clock);
    const token = await signer.sign(podClaims(seconds(clock)));
    assert.equal(verifier.isVerified(token), false);
    await verifier.verify(token);
    assert.equal(verifier.isVerified(token), true);
    assert.equal(verifier.isVerified(`${token}a`), false);
    assert.equal(verifier.isVerified('x'.repeat(9_000)), false);
    await clock.advance(3_610_000);
    assert.equal(verifier.isVerified(token), false);
  });

  it('a cached token is rejected after it expires', async () => {
    const clock = new FakeClock();
    const verifier = verifierOf(clock);
    const token = await signer.sign(podClaims(seconds(clock)));
    await verifier.verify(token);
    await clock.advance(3_500_000);
    await verifier.verify(token);
    await clock.advance(110_000);
    await assert.rejects(verifier.verify(token), (error) => isTemperError(error, 'TEMPER_TOKEN_INVALID'));
  });
});

describe('the signing keys of the cluster', () => {
  it('an unknown key id refreshes the keys, at most once per interval', async () => {
    const clock = new FakeClock();
    let reads = 0;
    let published = signer.published;
    const verifier = verifierOf(clock, async () => {
      reads += 1;
      return published;
    });
    await verifier.verify(await signer.sign(podClaims(seconds(clock))));
    assert.equal(reads, 1);
    const next = await testSigner('two');
    const token = await next.sign(podClaims(seconds(clock)));
    for (let index = 0; index < 20; index += 1) await assert.rejects(verifier.verify(token));
    assert.equal(reads, 1);
    published = { ...published, keys: { keys: [...signer.published.keys.keys, ...next.published.keys.keys] } };
    await clock.advance(10_001);
    await verifier.verify(token);
    assert.equal(reads, 2);
  });

  it('a removed key is no longer accepted, also for cached tokens', async () => {
    const clock = new FakeClock();
    const next = await testSigner('two');
    let published = signer.published;
    const verifier = verifierOf(clock, async () => published);
    const token = await signer.sign(podClaims(seconds(clock)));
    await verifier.verify(token);
    published = next.published;
    await clock.advance(300_001);
    await assert.rejects(verifier.verify(token), (error) => isTemperError(error, 'TEMPER_TOKEN_INVALID'));
  });

  it('cached keys stay valid while the API server is unavailable', async () => {
    const clock = new FakeClock();
    let isUnavailable = false;
    const verifier = verifierOf(clock, async () => {
      if (isUnavailable) throw new Error('unavailable');
      return signer.published;
    });
    const token = await signer.sign(podClaims(seconds(clock)));
    await verifier.verify(token);
    isUnavailable = true;
    await clock.advance(600_000);
    await verifier.verify(token);
  });

  it('while no keys could be read, every token is rejected with a retryable error', async () => {
    const clock = new FakeClock();
    const verifier = verifierOf(clock, async () => {
      throw new Error('unavailable');
    });
    const token = await signer.sign(podClaims(seconds(clock)));
    await assert.rejects(
      verifier.verify(token),
      (error) => isTemperError(error, 'TEMPER_OVERLOADED') && error.retry === 1_000,
    );
  });
});
