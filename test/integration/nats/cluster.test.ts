import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { desiredStreams, reconcileTopology, type StreamUsage } from '../../../src/nats/jetstream/topology.ts';
import { readServerInfo } from '../../../src/nats/server/server-info.ts';
import type { KeyPair } from '../../../src/operator/pki/certificates.ts';
import { issueCertificate } from '../../../src/operator/pki/certificate-issuer.ts';
import { CLUSTER_STORE_BYTES, type NatsClusterFixture, startNatsCluster } from '../../support/nats/cluster-fixture.ts';
import { gauges, newReloads } from '../../support/nats/reloads.ts';
import { poll, pollAssertion } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const TIMEOUT_MS = 60_000;
const LIFETIME_MS = 86_400_000;
const OPTIONS = { storeBytes: CLUSTER_STORE_BYTES };

describe('a cluster of three NATS servers with the generated configuration', () => {
  let cluster: NatsClusterFixture;
  before(async () => {
    cluster = await startNatsCluster();
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  const certificateOf = async (server: number) =>
    (await readServerInfo(`tls://localhost:${cluster.servers[server]?.port}`, AbortSignal.timeout(TIMEOUT_MS)))
      .certificate;

  it('streams of one copy are raised to three, which is reported once the copies are up to date', async () => {
    const operator = await cluster.connect('operator');
    const single = await pollAssertion('the streams', () => reconcileTopology(operator, OPTIONS), {
      timeoutMs: TIMEOUT_MS,
    });
    assert.deepEqual(single.drift, []);
    await operator.jetstream.publish('temper.audit.team-a', 'before');
    const raised = await reconcileTopology(operator, { ...OPTIONS, replicas: 3 });
    assert.equal(raised.updated.length, desiredStreams().length);
    assert.deepEqual(raised.drift, []);
    const usages = await poll('three copies of each stream', async () => {
      const seen: StreamUsage[] = [];
      await reconcileTopology(operator, { ...OPTIONS, replicas: 3, onUsage: (usage) => seen.push(usage) });
      return seen.every(({ copies }) => copies.declared === 3 && copies.current === 3 && copies.lag === 0) && seen;
    });
    assert.equal(usages.find(({ stream }) => stream === 'temper-audit')?.messages, 1);
  });

  it('a stream reports the copy on a server that is down', async () => {
    const operator = await cluster.connect('operator');
    await cluster.servers[2]?.kill();
    try {
      await poll('a missing copy', async () => {
        const seen: StreamUsage[] = [];
        await reconcileTopology(operator, { ...OPTIONS, replicas: 3, onUsage: (usage) => seen.push(usage) });
        return seen.some(({ copies }) => copies.declared === 3 && copies.current === 2);
      });
    } finally {
      await cluster.servers[2]?.restart();
      await poll('the streams of the server', () => cluster.isHealthy(2, ''), { timeoutMs: TIMEOUT_MS });
    }
  });

  it('a server that ends lets its clients move to another server first, although SIGTERM follows at once', async () => {
    const gateway = await cluster.connect('gateway');
    const name = gateway.nats.info?.server_name ?? '';
    const server = Number(name.at(-1));
    await cluster.servers[server]?.shutDown();
    try {
      await poll('a connection to another server', () => {
        const { server_name: current = name } = gateway.nats.info ?? {};
        return gateway.state().connected && current !== name;
      });
      const log = (await cluster.servers[server]?.log()) ?? '';
      assert.match(log, /Entering lame duck mode[^]*Trapped "terminated" signal[^]*Closing existing clients/);
    } finally {
      await cluster.servers[server]?.restart();
      await poll('the streams of the server', () => cluster.isHealthy(server, ''), { timeoutMs: TIMEOUT_MS });
    }
  });

  it('every server loads a renewed certificate, and one that is down delays no other and is named', async () => {
    const reloads = newReloads();
    const before = await certificateOf(0);
    await reloads.tasks.round(cluster.desired, NEVER_ABORTED);
    assert.deepEqual(reloads.gauges, gauges({ up: [1, 1, 1], current: [1, 1, 1] }));
    const renewed = await cluster.renewCertificate();
    await cluster.servers[1]?.kill();
    try {
      await reloads.tasks.round(renewed, NEVER_ABORTED);
      assert.deepEqual(reloads.gauges, gauges({ up: [1, 0, 1], current: [1, 0, 1] }));
      for (const server of [0, 2]) assert.ok(!before.equals(await certificateOf(server)), `server ${server}`);
      const problems = reloads.lines.filter((line) => line.includes('does not use the current certificate'));
      assert.equal(problems.length, 1, reloads.lines.join(''));
      assert.match(problems[0] ?? '', /"server":"temper-nats-1"/);
    } finally {
      await cluster.servers[1]?.restart();
    }
    // The routes to the other servers use the renewed certificates of both ends.
    await poll('the streams of the server', () => cluster.isHealthy(1, ''), { timeoutMs: TIMEOUT_MS });
    await reloads.tasks.round(renewed, NEVER_ABORTED);
    assert.deepEqual(reloads.gauges, gauges({ up: [1, 1, 1], current: [1, 1, 1] }));
  });

  it('only a certificate of a server opens a route: neither none, nor that of a gateway, nor one of another name', async () => {
    const issue = (host: string, isPeer: boolean) =>
      issueCertificate(cluster.ca, { names: [host], addresses: [], isPeer }, new Date(), LIFETIME_MS);
    assert.equal(await opensRoute(await issue('localhost', true)), true);
    assert.equal(await opensRoute(undefined), false);
    assert.equal(await opensRoute(await issue('localhost', false)), false);
    assert.equal(await opensRoute(await issue('temper-gateway.temper-system.svc', true)), false);
  });

  /** Connects to the port of routes as another server does. The cluster answers only a server that it accepts. */
  async function opensRoute(pair: KeyPair | undefined): Promise<boolean> {
    const config = await readFile(join(cluster.folder, 'temper-nats-0.conf'), 'utf8');
    const port = Number(/cluster \{\n {2}name: "temper"\n {2}listen: "127\.0\.0\.1:(\d+)"/.exec(config)?.[1]);
    const keys = pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
    const socket = connectTls({
      port,
      host: '127.0.0.1',
      servername: 'localhost',
      ca: cluster.ca.certificate,
      ...keys,
    });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    let text = '';
    socket.on('data', (data: Buffer) => {
      text += data.toString();
      if (text.includes('PONG')) resolve(true);
      if (text.includes('-ERR')) resolve(false);
    });
    socket.once('error', () => resolve(false)).once('close', () => resolve(false));
    socket.write(
      'CONNECT {"verbose":false,"pedantic":false,"tls_required":true,"name":"NDX","cluster":"temper"}\r\nINFO {"server_id":"NDX","server_name":"x","cluster":"temper","proto":1,"headers":true}\r\nPING\r\n',
    );
    try {
      return await promise;
    } finally {
      socket.destroy();
    }
  }
});
