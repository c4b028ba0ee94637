import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../../src/lib/clock.ts';
import { writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import { GatewayConfigFiles } from '../../../src/gateway-client/endpoints/gateway-config-files.ts';
import { GatewayClient } from '../../../src/gateway-client/gateway-client.ts';
import { POD_API_PATHS } from '../../../src/gateway-api/pod-api.ts';
import { GatewayFixture, type GatewayReplica } from '../../support/gateway/gateway-fixture.ts';
import { pollValue } from '../../support/poll.ts';
import { callOptions } from '../../support/call-options.ts';

const CERTIFICATE = new URL('../../fixtures/tls/certificate.pem', import.meta.url);
/** Above the burst limit of an agent. */
const MANY = 300;
/** Together they open more connections than an agent may have requests in flight. */
const CLIENTS = 3;
const FEW = 30;

describe('the rate limits of agents', { timeout: 600_000 }, () => {
  let fixture: GatewayFixture;
  let gateway: GatewayReplica;

  before(async () => {
    fixture = await GatewayFixture.open(['team-a']);
    gateway = await fixture.startReplica();
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  /** An agent with a function that opens another client for it. */
  async function agentWithClients(agent: string): Promise<() => GatewayClient> {
    const { token } = await fixture.createRunningAgent('team-a', agent);
    await pollValue(
      `the gateway to know agent ${agent}`,
      async () => (await gateway.call('GET', POD_API_PATHS.assignment, { token })).status,
      (value) => value === 200,
    );
    const folder = join(fixture.folder, agent);
    await mkdir(folder);
    const authority = await readFile(CERTIFICATE, 'utf8');
    await writeGatewayConfig(folder, {
      url: `https://127.0.0.1:${gateway.port}`,
      name: 'api.example.com',
      authority,
      token,
    });
    const configFiles = new GatewayConfigFiles({ folder, tokenFile: join(folder, 'token'), clock: systemClock });
    return () => new GatewayClient({ configFiles, clock: systemClock, random: Math.random });
  }

  const call = (client: GatewayClient) =>
    client.call({
      method: 'POST',
      path: POD_API_PATHS.reports,
      body: {},
      op: callOptions(),
    });

  it('an agent above its rate limit is slowed down until all its requests succeed, and other agents are not affected', async () => {
    const openGreedy = await agentWithClients('greedy');
    await using clients = new AsyncDisposableStack();
    const greedy = Array.from({ length: CLIENTS }, () => clients.use(openGreedy()));
    await using modest = (await agentWithClients('modest'))();
    const answered = (agent: string, status: number): number => {
      const facts = [`"agent":"${agent}"`, `"status":${status}`, '"route":"/v1/reports"'];
      return fixture.logLines.filter((line) => facts.every((fact) => line.includes(fact))).length;
    };
    const flood = async (): Promise<number> => {
      let sent = 0;
      // A slow gateway never empties the bucket of requests per second, but it has more requests in flight.
      while (answered('greedy', 429) === 0) {
        await Promise.all(greedy.flatMap((client) => Array.from({ length: MANY / CLIENTS }, () => call(client))));
        sent += MANY;
      }
      return sent;
    };
    const flooding = flood();
    for (let made = 0; made < FEW; made += 1) await call(modest);
    const sent = await flooding;
    assert.deepEqual([answered('greedy', 204), answered('modest', 204)], [sent, FEW]);
    assert.equal(answered('modest', 429), 0);
  });
});
