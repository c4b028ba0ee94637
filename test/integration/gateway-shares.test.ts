import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { randomIds } from '../../src/lib/ids.ts';
import { writeDoors } from '../../src/remote/certificates.testing.ts';
import { DoorFiles } from '../../src/remote/door-files.ts';
import { GatewayClient } from '../../src/remote/gateway-client.ts';
import { PATHS } from '../../src/remote/wire.ts';
import { eventually, GatewayHouse, type Replica } from './gateway-house.ts';

const CERTIFICATE = new URL('../fixtures/tls/certificate.pem', import.meta.url);
/** More than an agent may make at once. */
const MANY = 300;
const FEW = 30;

describe('shares of agents', { timeout: 120_000 }, () => {
  let house: GatewayHouse;
  let gateway: Replica;

  before(async () => {
    house = await GatewayHouse.open(['team-a']);
    gateway = await house.replica();
  });
  after(async () => {
    await house?.[Symbol.asyncDispose]();
  });

  async function clientOf(agent: string): Promise<GatewayClient> {
    const { token } = await house.runningAgent('team-a', agent);
    await eventually(async () => (await gateway.call('GET', PATHS.assignment, { token })).status === 200);
    const folder = join(house.folder, agent);
    await mkdir(folder);
    const authority = await readFile(CERTIFICATE, 'utf8');
    await writeDoors(folder, { url: `https://127.0.0.1:${gateway.port}`, name: 'api.example.com', authority, token });
    const doors = new DoorFiles({ folder, tokenFile: join(folder, 'token'), clock: systemClock });
    return new GatewayClient({ doors, clock: systemClock, random: Math.random });
  }

  const call = (client: GatewayClient) =>
    client.call({
      method: 'POST',
      path: PATHS.claims,
      body: {},
      op: {
        signal: new AbortController().signal,
        deadline: systemClock.monotonic() + 60_000,
        key: randomIds.next('claims'),
      },
    });

  it('slow down who takes too much, who then waits and gets all of it, and nobody else', async () => {
    await using greedy = await clientOf('greedy');
    await using modest = await clientOf('modest');
    const flood = Promise.all(Array.from({ length: MANY }, () => call(greedy)));
    for (let made = 0; made < FEW; made += 1) await call(modest);
    await flood;
    const answered = (agent: string, status: number): number => {
      const facts = [`"agent":"${agent}"`, `"status":${status}`, '"route":"/v1/claims"'];
      return house.lines.filter((line) => facts.every((fact) => line.includes(fact))).length;
    };
    assert.deepEqual([answered('greedy', 204), answered('modest', 204)], [MANY, FEW]);
    assert.ok(answered('greedy', 429) > 0, 'the greedy one met its limit');
    assert.equal(answered('modest', 429), 0);
  });
});
