import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, it } from 'node:test';
import { type HealthOptions, startHealthServer } from './health.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { METRICS } from './metrics.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';

async function aServer(more: Partial<HealthOptions> = {}) {
  const clock = new FakeClock();
  const registry = createRegistry();
  registerMetrics(registry, METRICS).gauge('leader_election_master_status', { name: 'x' }, 1);
  const server = await startHealthServer({
    host: '127.0.0.1',
    port: 0,
    clock,
    registry,
    notReady: () => [],
    ...more,
  });
  const ask = async (path: string, method = 'GET'): Promise<[number, string]> => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
    return [response.status, await response.text()];
  };
  return { clock, ask, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe('the health server', () => {
  it('/healthz fails after the event loop was blocked, and recovers after a while', async () => {
    await using fixture = await aServer();
    const { clock, ask } = fixture;
    await clock.advance(10_000);
    assert.deepEqual(await ask('/healthz'), [200, 'ok\n']);
    clock.skip(6_001);
    assert.deepEqual(await ask('/healthz'), [500, 'the event loop was blocked for 5001 ms\n']);
    await clock.advance(0);
    assert.equal((await ask('/healthz'))[0], 500);
    await clock.advance(16_000);
    assert.equal((await ask('/healthz'))[0], 200);
  });

  it('/readyz lists the parts that are not ready', async () => {
    let waiting: string[] = ['agents', 'pods'];
    await using fixture = await aServer({ notReady: () => waiting });
    assert.deepEqual(await fixture.ask('/readyz'), [503, 'waiting for agents, pods\n']);
    waiting = [];
    assert.deepEqual(await fixture.ask('/readyz?verbose'), [200, 'ok\n']);
  });

  it('/metrics serves the metrics; other paths and methods are rejected', async () => {
    await using fixture = await aServer();
    const [status, text] = await fixture.ask('/metrics');
    assert.equal(status, 200);
    assert.match(text, /^leader_election_master_status\{name="x"\} 1$/m);
    assert.equal((await fixture.ask('/'))[0], 404);
    assert.equal((await fixture.ask('/metrics', 'POST'))[0], 405);
  });

  it('without a host the health server answers on IPv4, and on IPv6 where the machine has it', async () => {
    const registry = createRegistry();
    await using server = await startHealthServer({ port: 0, clock: new FakeClock(), registry, notReady: () => [] });
    const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    const hasIpv6 = addresses.some(({ family, internal }) => family === 'IPv6' && internal);
    for (const host of hasIpv6 ? ['127.0.0.1', '[::1]'] : ['127.0.0.1']) {
      assert.equal((await fetch(`http://${host}:${server.port}/healthz`)).status, 200, host);
    }
  });

  it('startHealthServer rejects when the port is in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    await assert.rejects(aServer({ port }), { code: 'EADDRINUSE' });
    await new Promise((resolve) => other.close(resolve));
  });
});
