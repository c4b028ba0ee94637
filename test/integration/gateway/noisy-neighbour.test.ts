import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { canonicalJson, digestOf } from '../../../src/lib/canonical.ts';
import type { Json } from '../../../src/lib/json.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import { type Attacker, NoisyNeighbours } from '../../support/gateway/noisy-neighbour.ts';
import { httpsClient, type HttpResponse } from '../../support/gateway/gateway-fixture.ts';

/** Calls that the gateway may answer by a response or by closing the connection. */
async function statuses(calls: readonly Promise<HttpResponse>[]): Promise<number[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((result) => (result.status === 'fulfilled' ? result.value.status : 0));
}

/** Sends body bytes on one connection until the gateway closes it. */
async function sendUntilClosed(attacker: Attacker, head: string, maxBytes: number): Promise<void> {
  const socket = await attacker.open();
  socket.resume();
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(head);
  const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
  for (let sent = 0; sent < maxBytes && socket.writable; sent += 65_536) {
    if (!socket.write(piece))
      await Promise.race([new Promise<void>((resolve) => socket.once('drain', () => resolve())), closed]);
  }
  socket.destroy();
  await closed;
}

describe('a hostile pod beside a working one', { timeout: 600_000 }, () => {
  let neighbours: NoisyNeighbours;

  before(async () => {
    // The provider does not exist: a hostile tool is refused before a judge is asked.
    neighbours = await NoisyNeighbours.start({
      models: {
        providers: [{ name: 'none', type: 'openai', baseUrl: 'http://127.0.0.1:9/v1' }],
        aliases: { 'default/default': 'none/author', 'default/judge': 'none/judge' },
      },
      attackerPolicy: {
        level: { initial: 'restricted', ceiling: 'restricted' },
        forge: { limits: { minTestCases: 1 } },
        models: { judge: 'default/judge' },
      },
      attacker: { forge: { enabled: true, modes: ['Sandbox'] } },
    });
  });
  after(async () => {
    await neighbours?.[Symbol.asyncDispose]();
  });

  it('bodies of millions of small values cost the gateway no memory and the victim nothing', async () => {
    const items = Array.from({ length: 1_300_000 }, () => []);
    await neighbours.survive(async (attacker) => {
      const body = { deliveryToken: 'bad', afterSeq: 0, items };
      for (let index = 0; index < 5; index += 1) {
        const calls = [1, 2].map((call) =>
          attacker.call('POST', '/v1/sessions/s1/items', { body, key: `k-${index}-${call}` }),
        );
        assert.deepEqual(
          (await statuses(calls)).filter((status) => ![0, 413, 429].includes(status)),
          [],
        );
      }
    });
  });

  it('endless bodies to unknown routes and without a token cost the victim nothing', async () => {
    await neighbours.survive(async (attacker) => {
      const head = (path: string) =>
        `POST ${path} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const paths = ['/v1/nothing', '/v1/reports', '/v1/models/stream'];
      const all = Array.from({ length: 30 }, (_, index) => head(paths[index % paths.length] ?? ''));
      await Promise.all(all.map((one) => sendUntilClosed(attacker, one, 256 * 1_048_576)));
    });
  });

  it('a pod that opens a thousand connections has no more than its address may have', async () => {
    await neighbours.survive(async (attacker) => {
      const opened = await Promise.allSettled(Array.from({ length: 1_000 }, () => attacker.open()));
      const sockets = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      assert.ok(sockets.length <= 64, `${sockets.length} connections`);
      for (const socket of sockets) socket.destroy();
    });
  });

  it('a pod that sends large bodies all at once is held to its share of bytes', async () => {
    const body = { deliveryToken: 'bad', afterSeq: 0, items: [{ role: 'user', text: 'x'.repeat(1_900_000) }] };
    await neighbours.survive(async (attacker) => {
      const seen = new Set<number>();
      for (let round = 0; round < 3; round += 1) {
        const calls = Array.from({ length: 16 }, (_, index) =>
          attacker.call('POST', '/v1/sessions/s1/items', { body, key: `large-${round}-${index}` }),
        );
        for (const status of await statuses(calls)) seen.add(status);
      }
      assert.ok(seen.has(429), [...seen].join());
      assert.deepEqual(
        [...seen].filter((status) => ![0, 403, 429, 503].includes(status)),
        [],
      );
    });
  });

  it('thousands of long polls of one pod are refused beyond its share', async () => {
    await neighbours.survive(async (attacker) => {
      const ending = new AbortController();
      const refused = Promise.withResolvers<void>();
      const polls = Array.from({ length: 40 }, async () => {
        for (let round = 0; round < 25 && !ending.signal.aborted; round += 1) {
          const path = '/v1/assignment?wait=60&version=none';
          const known = await attacker.call('GET', path, { signal: ending.signal }).catch(() => undefined);
          if (known?.status === 429) refused.resolve();
          const { version } = JSON.parse(known?.text ?? '{}') as { version?: string };
          if (version === undefined) continue;
          const held = attacker.call('GET', `/v1/assignment?wait=60&version=${version}`, { signal: ending.signal });
          if ((await held.catch(() => undefined))?.status === 429) refused.resolve();
        }
      });
      await refused.promise;
      ending.abort();
      await Promise.all(polls);
    });
  });

  it('many tokens that no cluster signed are refused, and the victim is served', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const forged = `${part({ alg: 'RS256', kid: 'x' })}.${part({ iss: 'me', aud: ['temper-gateway'] })}.${'A'.repeat(342)}`;
    await neighbours.survive(async ({ port }) => {
      for (let round = 0; round < 5; round += 1) {
        const calls = Array.from({ length: 40 }, () =>
          httpsClient(port)('POST', '/v1/reports', { token: forged, key: 'k', body: {} }),
        );
        assert.deepEqual(
          (await statuses(calls)).filter((status) => ![0, 401, 503].includes(status)),
          [],
        );
      }
    });
  });

  it('tools whose check is expensive take the time of their own agent only', async () => {
    const hostile = (serial: number): Json => {
      const pattern = (index: number) => `^(?:[a-z]{1,20}|[0-9]{1,${(index % 20) + 2}}){1,20}x${serial}$`;
      const properties = Object.fromEntries(
        Array.from({ length: 100 }, (_, index) => [`p${index}`, { pattern: pattern(index), type: 'string' }]),
      );
      const inputSchema = canonicalJson({ properties, type: 'object' });
      return anArtifact(`hostile_${serial}`, { inputSchema }) as unknown as Json;
    };
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver();
      const evidence = { tests: [], milliseconds: 1, heapBytes: 1, warnings: [] };
      const seen = new Set<number>();
      for (let round = 0; round < 4; round += 1) {
        const calls = Array.from({ length: 15 }, (_, index) => {
          const artifact = hostile(15 * round + index);
          const candidate = { artifact, digest: digestOf(artifact), evidence };
          const body = { deliveryToken, candidate };
          return attacker.call('POST', '/v1/forge/review', { body, key: `hostile-${round}-${index}` });
        });
        for (const status of await statuses(calls)) seen.add(status);
      }
      assert.deepEqual(
        [...seen].filter((status) => ![200, 429, 503].includes(status)),
        [],
      );
      assert.ok(seen.has(200) && seen.has(429), [...seen].join());
    });
  });
});
