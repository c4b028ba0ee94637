import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import pLimit from 'p-limit';
import { egressConfig } from '../../../../src/egress/config.ts';
import { runEgress } from '../../../../src/egress/egress.ts';
import { ProxyClient } from '../../../../src/egress/proxy/proxy-client.testing.ts';
import { NO_PLAIN_REQUEST, NO_TUNNEL } from '../../../../src/egress/request/target.testing.ts';
import { writeGatewayConfig } from '../../../../src/gateway-client/certificates.testing.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import { egressFetch } from '../../../../src/pod/agent/egress-fetch.ts';
import { createLogger } from '../../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../../src/telemetry/secret-redactor.ts';
import { pollValue } from '../../../support/poll.ts';
import { NEVER_ABORTED } from '../../../support/stubs.ts';
import type { ModelGatewayFixture, ModelGatewayReplica } from '../../../support/gateway/model-gateway-fixture.ts';

const TLS = new URL('../../../fixtures/tls/', import.meta.url);
const HOST = 'api.example.com:443';
const PUBLIC = '93.184.215.14';
/** Addresses that no agent reaches, in the notations that a name server may give. */
const INSIDE = [
  '0.0.0.0',
  '10.96.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.8',
  '192.168.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:169.254.169.254',
  '::ffff:0:a9fe:a9fe',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::1',
  '2001::1',
  '2002:a9fe:a9fe::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fec0::1',
  'ff02::1',
];
const NAMES: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  INSIDE.flatMap((address, index) => [
    [`inside-${index}.example.com`, [address]],
    [`mixed-${index}.example.com`, [PUBLIC, address]],
  ]),
);

export interface EgressWorld {
  fixture: ModelGatewayFixture;
  gateway: ModelGatewayReplica;
}

/** A replica of the egress proxy; the public address of every name ends at the server. */
async function startProxy({ fixture, gateway }: EgressWorld, target: Server, signal: AbortSignal) {
  const folder = await mkdtemp(join(fixture.folder, 'egress-'));
  const authority = await readFile(new URL('certificate.pem', TLS), 'utf8');
  const url = `https://127.0.0.1:${gateway.port}`;
  await writeGatewayConfig(folder, { url, name: 'api.example.com', authority, token: 'egress-1' });
  const [certificate = '', key = ''] = ['certificate.pem', 'key.pem'].map((name) => fileURLToPath(new URL(name, TLS)));
  const config = egressConfig({
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    tls: { certificate, key },
    gateway: { endpoints: folder, tokenFile: join(folder, 'token') },
  });
  const { port } = target.address() as AddressInfo;
  const network = {
    resolve: async (host: string) => NAMES[host] ?? [PUBLIC],
    connect: async () => {
      const socket = connect({ host: '127.0.0.1', port });
      await once(socket, 'connect');
      return socket;
    },
  };
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) };
  const log = createLogger({ level: 'info', destination, secrets: createSecretRedactor() });
  const ready = Promise.withResolvers<{ port: number; healthPort: number }>();
  const running = runEgress(config, { log, signal, network, listening: ready.resolve });
  running.catch(ready.reject);
  return { ...(await ready.promise), running, lines, certificate: authority };
}

/** Connections of agents through the egress proxy, decided and charged by a real gateway. */
export function egressSuite(open: () => EgressWorld): void {
  describe('connections through the egress proxy', () => {
    const stop = new AbortController();
    const client = new ProxyClient();
    let target: Server;
    let proxy: Awaited<ReturnType<typeof startProxy>>;

    before(async () => {
      const [cert, key] = await Promise.all(
        ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
      );
      target = createServer({ cert: cert ?? '', key: key ?? '' }, ({ url }, response) => {
        if (url === '/moved') response.writeHead(302, { location: 'https://169.254.169.254/latest/meta-data/' }).end();
        else response.end(Buffer.alloc(Number(url?.slice(1)), 'a'));
      });
      await new Promise<void>((done) => target.listen(0, '127.0.0.1', done));
      proxy = await startProxy(open(), target, stop.signal);
      Object.assign(client, { port: proxy.port, certificate: proxy.certificate });
      open().fixture.setPolicy('connected', {
        level: { initial: 'restricted', ceiling: 'restricted' },
        egress: { allow: ['*.example.com'] },
      });
    });
    after(async () => {
      client.destroyAll();
      stop.abort();
      await proxy?.running;
      target?.closeAllConnections();
      target?.close();
    });

    const head = (agent: string, token = open().fixture.deliveryToken(agent)): string =>
      `Proxy-Authorization: Bearer ${agent}\r\ntemper-delivery-token: ${token}\r\n`;
    const setAgent = (name: string, spec: object = {}) =>
      open().fixture.setAgent(name, { grants: { network: ['api.example.com'] }, ...spec }, 'connected');
    const refused = (agent: string, authority: string, words: RegExp, token?: string): Promise<void> =>
      assert.rejects(client.tunnel(authority, head(agent, token)), (error) => {
        assert.match((error as Error).message, words);
        return true;
      });

    it('an agent reaches the hosts that it and its policy name, with the delivery token of its message', async () => {
      setAgent('fetcher');
      assert.match(await client.get(HOST, '/5', head('fetcher')), /^HTTP\/1\.1 200 .*aaaaa$/s);
      await refused('fetcher', 'other.example.com:443', /403 .*TEMPER_POLICY_DENIED.*not granted/s);
      await refused('fetcher', 'api.example.com:8443', /403 .*TEMPER_POLICY_DENIED/s);
      await refused('fetcher', HOST, /407 .*TEMPER_DELIVERY_TOKEN_INVALID/s, 'd1.x.y');
      setAgent('neighbour');
      const stolen = open().fixture.deliveryToken('neighbour');
      await refused('fetcher', HOST, /407 .*TEMPER_DELIVERY_TOKEN_INVALID.*another pod/s, stolen);
      const served = proxy.lines.filter(({ outcome }) => outcome === 'ok');
      assert.deepEqual(
        served.map(({ agent, host, session, messageId }) => [agent, host, session, messageId]),
        [['fetcher', 'api.example.com', 's1', 'message-1']],
      );
      const page = await (await fetch(`http://127.0.0.1:${proxy.healthPort}/metrics`)).text();
      assert.match(page, /temper_egress_requests_total\{method="CONNECT",outcome="TEMPER_POLICY_DENIED"\} 2/);
    });

    it('the fetch of a tool in a pod passes the proxy, and has the error of the gateway where it does not', async () => {
      setAgent('smith');
      const endpoint = { origin: `https://127.0.0.1:${proxy.port}`, serverName: 'api.example.com' };
      const fetchOfTool = egressFetch({
        files: {
          current: async () => ({
            ...endpoint,
            ca: proxy.certificate,
            token: 'smith',
            targetAuthorities: proxy.certificate,
          }),
        },
        deliveryToken: () => open().fixture.deliveryToken('smith'),
        clock: systemClock,
      });
      const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' };
      const rules = { hostDenialReason: () => undefined };
      const { status, body } = await fetchOfTool({ url: 'https://api.example.com/7' }, rules, op);
      assert.deepEqual([status, body], [200, 'aaaaaaa']);
      await assert.rejects(fetchOfTool({ url: 'https://other.example.com/7' }, rules, op), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_POLICY_DENIED'), String(error));
        return /other\.example\.com.* is not granted to agent "smith"/.test(error.message);
      });
      const redirected = fetchOfTool({ url: 'https://api.example.com/moved' }, rules, op);
      await assert.rejects(redirected, (error) => isTemperError(error, 'TEMPER_FETCH_DENIED'));
    });

    it('a name with an address inside, alone or beside a public one, is refused after it was allowed', async () => {
      setAgent('resolver', { grants: { network: ['*.example.com'] } });
      const before = proxy.lines.length;
      const hosts = Object.keys(NAMES);
      const limit = pLimit(8);
      const words = /403 .*TEMPER_FETCH_DENIED.*not public/s;
      await Promise.all(hosts.map((host) => limit(() => refused('resolver', `${host}:443`, words))));
      const lines = proxy.lines.slice(before).filter(({ agent }) => agent === 'resolver');
      assert.equal(lines.length, hosts.length);
      // No connection was opened.
      assert.deepEqual(
        lines.filter(({ address }) => address !== undefined),
        [],
      );
    });

    it('every other form of an address is refused before a gateway is asked', async () => {
      setAgent('writer', { grants: { network: ['**'] } });
      // A parser drops the spaces around an authority.
      const authorities = NO_TUNNEL.filter((authority) => authority.trim() === authority);
      const lines = [
        ...authorities.map((authority) => `CONNECT ${authority}`),
        ...NO_PLAIN_REQUEST.map((url) => `GET ${url}`),
      ];
      const limit = pLimit(8);
      const request = (line: string) =>
        client.exchange(`${line} HTTP/1.1\r\nHost: api.example.com\r\n${head('writer')}\r\n`);
      const answers = await Promise.all(lines.map((line) => limit(() => request(line))));
      // A line that is not HTTP ends in the parser.
      for (const [index, line] of lines.entries())
        assert.match(answers[index] ?? '', /^HTTP\/1\.1 (?:403 .*TEMPER_FETCH_DENIED|400 )/s, line);
      assert.deepEqual(
        proxy.lines.filter(({ agent }) => agent === 'writer'),
        [],
      );
    });

    it('the replica is ready, because a gateway takes its reports', async () => {
      const ready = async () => (await fetch(`http://127.0.0.1:${proxy.healthPort}/readyz`)).status;
      await pollValue('the readiness', ready, (status) => status === 200);
    });

    it('suspending an agent ends its open connections, and those of no other agent', async () => {
      setAgent('suspended');
      setAgent('other');
      const [tunnel, others] = await Promise.all([
        client.tunnel(HOST, head('suspended')),
        client.tunnel(HOST, head('other')),
      ]);
      const closed = once(tunnel.resume(), 'close', { signal: AbortSignal.timeout(30_000) });
      setAgent('suspended', { suspend: true });
      await closed;
      assert.equal(others.destroyed, false);
      await refused('suspended', HOST, /403 .*TEMPER_AGENT_SUSPENDED/s);
      others.destroy();
    });

    it('a used networkBytesPerHour ends the open connections of the agent, and refuses further ones', async () => {
      setAgent('greedy', { quotas: { networkBytesPerHour: '100Ki' } });
      const idle = await client.tunnel(HOST, head('greedy'));
      const closed = once(idle.resume(), 'close', { signal: AbortSignal.timeout(30_000) });
      const received = await client.get(HOST, '/1000000', head('greedy'));
      assert.ok(received.length > 1_000_000, String(received.length));
      await closed;
      await refused('greedy', HOST, /429 .*TEMPER_QUOTA_EXCEEDED.*networkBytesPerHour are used/s);
    });
  });
}
