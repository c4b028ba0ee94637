import assert from 'node:assert/strict';
import { createPrivateKey, sign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { pollValue } from '../../../support/poll.ts';
import { assertStatuses, flood, floodUntil, type StatusCounts } from '../../../support/gateway/neighbours/flood.ts';
import { NoisyNeighbours } from '../../../support/gateway/neighbours/noisy-neighbours.ts';
import type { Tenant } from '../../../support/gateway/neighbours/tenant.ts';

const MAX_PER_ADDRESS = 64;
const HOST = 'Host: gateway\r\n';
/** Of a gateway that has too much to do, and of an address whose burst is used. */
const LATER = [429, 503];

/** The status of a call that the gateway considers. */
async function statusOf(call: () => Promise<{ status: number }>): Promise<number> {
  const { status } = await pollValue('an answer', call, (response) => !LATER.includes(response.status));
  return status;
}

/** How many of the attempts to connect succeed. The connections stay open. */
async function opened(count: number, open: () => Promise<unknown>): Promise<number> {
  const results = await Promise.allSettled(Array.from({ length: count }, open));
  return results.filter(({ status }) => status === 'fulfilled').length;
}

describe('a hostile pod that misuses connections and tokens', { timeout: 600_000 }, () => {
  let neighbours: NoisyNeighbours;

  before(async () => {
    neighbours = await NoisyNeighbours.start();
  });
  after(async () => {
    await neighbours?.[Symbol.asyncDispose]();
  });

  const refusals = (reason: string) => neighbours.metric(`temper_connections_refused_total{reason="${reason}"}`);

  it('a pod that opens a thousand connections has no more than its address may have', async () => {
    await neighbours.survive(
      async ({ pod }) => {
        const count = await opened(1_000, () => pod.open());
        assert.ok(count <= MAX_PER_ADDRESS, `${count} connections`);
      },
      { named: 'address' },
    );
    assert.ok((await refusals('address')) > 0);
  });

  it('a pod that makes TLS handshakes without end is refused before the next one', async () => {
    await neighbours.survive(
      async ({ pod }) => {
        const handshake = async (): Promise<{ status: number }> => {
          (await pod.open()).destroy();
          return { status: 1 };
        };
        // After the burst it has ten per second.
        const refusedOf = (counts: StatusCounts): number => counts.get(0) ?? 0;
        const refused = refusedOf(await floodUntil((counts) => refusedOf(counts) > 200, handshake));
        assert.ok(refused > 200, `${refused} handshakes were refused`);
      },
      { named: 'address' },
    );
    assert.ok((await refusals('unauthenticated')) > 0);
  });

  it('handshakes and headers that never end are closed after seconds', async () => {
    await neighbours.survive(
      async ({ pod, token }) => {
        const silent = await Promise.all(Array.from({ length: 20 }, () => pod.openTcp()));
        // A record of a handshake that promises more than it sends.
        for (const socket of silent) socket.write(Buffer.from([0x16, 0x03, 0x01, 0x40, 0x00, 0x01]));
        const slow = await Promise.all(Array.from({ length: 40 }, () => pod.open()));
        for (const [index, socket] of slow.entries()) {
          socket.write(
            `GET /v1/assignment HTTP/1.1\r\n${HOST}${index % 2 === 0 ? `Authorization: Bearer ${token}\r\n` : ''}X: `,
          );
        }
        const trickle = setInterval(() => slow.forEach((socket) => socket.write('a')), 250);
        try {
          await Promise.all(
            [...silent, ...slow].map((socket) => new Promise((resolve) => socket.resume().once('close', resolve))),
          );
        } finally {
          clearInterval(trickle);
        }
      },
      { named: 'address' },
    );
    assert.ok((await refusals('tls')) >= 20);
    assert.ok((await refusals('request')) >= 40);
  });

  it('older versions of TLS, renegotiation, HTTP/2 and plain HTTP are refused', async () => {
    await neighbours.survive(
      async ({ pod }) => {
        await assert.rejects(pod.open({ minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }));
        await assert.rejects(pod.open({ ALPNProtocols: ['h2'] }));
        const socket = await pod.open();
        assert.equal(socket.getProtocol(), 'TLSv1.3');
        // TLS 1.3 has no renegotiation; a server that offered it would run a handshake for each.
        await assert.rejects(
          new Promise<void>((resolve, reject) => {
            const started = socket.renegotiate({}, (error) => (error === null ? resolve() : reject(error)));
            if (started === false) reject(new Error('refused'));
          }),
        );
        const plain = await pod.openTcp();
        plain.write(`GET /v1/assignment HTTP/1.1\r\n${HOST}\r\n`);
        await new Promise((resolve) => plain.resume().once('close', resolve));
      },
      { named: 'address' },
    );
  });

  it('a pod with the token of a user does not take the connections of all users', async () => {
    await neighbours.survive(
      async (attacker) => {
        const request = `GET /v1/users/namespaces/team-a/top HTTP/1.1\r\n${HOST}Temper-Token: ${attacker.userToken}\r\n\r\n`;
        const holding: string[] = [];
        await flood(
          450,
          async () => {
            const socket = await attacker.pod.open();
            socket.write(request);
            const [line = ''] = (
              await new Promise<string>((resolve, reject) => {
                socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
                socket.once('close', () => reject(new Error('closed')));
              })
            ).split('\r\n');
            holding.push(line);
            return { status: Number(line.split(' ')[1]) };
          },
          32,
        );
        assert.ok(
          holding.some((line) => line.includes('429')),
          `${holding.length} connections of one namespace`,
        );
      },
      { named: 'address' },
    );
    assert.ok((await refusals('namespace')) > 0);
  });

  it('many tokens that no cluster signed are refused, and after a while not even verified', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const forged = (index: number) =>
      `${part({ alg: 'RS256', kid: `k-${index}` })}.${part({ iss: 'me', aud: ['temper-gateway'] })}.${'A'.repeat(342)}`;
    await neighbours.survive(
      async ({ pod }) => {
        const call = (index: number) => pod.call('POST', '/v1/reports', { token: forged(index), key: 'k', body: {} });
        assertStatuses(await floodUntil((counts) => counts.has(429), call, 60), [401, 429], [401, 429]);
      },
      { named: 'address' },
    );
  });

  it('tokens of the wrong time, lifetime, audience or address are refused, although the cluster signed them', async () => {
    const key = createPrivateKey(await readFile(neighbours.fixture.plane.serviceAccountKey));
    const resigned = (token: string, change: object): string => {
      const [header = '', payload = ''] = token.split('.');
      const claims = { ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), ...change };
      const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
      return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
    };
    const now = Math.floor(Date.now() / 1_000);
    await neighbours.survive(
      async (attacker) => {
        const status = (token: string) => statusOf(() => attacker.pod.call('GET', '/v1/assignment', { token }));
        assert.equal(await status(resigned(attacker.token, { jti: 'another' })), 200);
        for (const [change, expected] of [
          [{ exp: now - 60, iat: now - 600 }, 401],
          [{ nbf: now + 60 }, 401],
          [{ exp: now + 86_400 * 365 }, 401],
          [{ iat: now - 86_400, exp: now + 60 }, 401],
          [{ exp: '9'.repeat(20) }, 401],
          [{ exp: null }, 401],
          [{ aud: ['temper-gateway', 'https://kubernetes.default.svc'] }, 401],
          [{ aud: [] }, 401],
          [{ sub: 'system:serviceaccount:team-b:temper-users' }, 401],
          [{ iss: 'https://evil.example' }, 401],
        ] as const) {
          assert.equal(await status(resigned(attacker.token, change)), expected, JSON.stringify(change));
        }
        assert.equal(await status(neighbours.victim.tenant.token), 403);
        const path = '/v1/users/namespaces/team-b/top';
        const asUser = (userToken: string) => statusOf(() => attacker.users.call('GET', path, { userToken }));
        assert.equal(await asUser(attacker.userToken), 403);
        assert.equal(await asUser(attacker.token), 401);
      },
      { named: 'address' },
    );
  });

  it('a flood of tokens of users refuses no user who was here before', async () => {
    await neighbours.survive(
      async (attacker: Tenant) => {
        const call = (index: number) =>
          attacker.users.call('GET', '/v1/users/namespaces/team-b/top', { userToken: `${attacker.userToken}${index}` });
        assertStatuses(await flood(1_500, call, 128), [401, 429], [401]);
        const { pod } = attacker;
        const token = `${attacker.token}x`;
        assert.equal(await statusOf(() => pod.call('GET', '/v1/assignment', { token })), 401);
      },
      { named: 'address' },
    );
  });
});
