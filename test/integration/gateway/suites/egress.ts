import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import pLimit from 'p-limit';
import type { IncomingMessage } from 'node:http';
import type { CapabilityTools } from '../../../../src/gateway/capabilities/capability-tools.ts';
import { type CatalogObject, pruneCapability } from '../../../../src/gateway/discovery/catalog-entries.ts';
import { ProxyClient } from '../../../../src/egress/proxy/proxy-client.testing.ts';
import { NO_PLAIN_REQUEST, NO_TUNNEL } from '../../../../src/egress/request/target.testing.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import { NO_BROKERED_TOOLS } from '../../../../src/gateway/brokered/port.ts';
import type { ErrorCode } from '../../../../src/lib/error-codes.ts';
import { egressFetch } from '../../../../src/pod/agent/egress-fetch.ts';
import { callBrokered } from '../../../support/gateway/brokered-caller.ts';
import { pollAssertion, pollValue } from '../../../support/poll.ts';
import { NEVER_ABORTED } from '../../../support/stubs.ts';
import {
  brokeredCapabilities,
  egressEndpoints,
  type EgressSetup,
  INTERNAL_NAMES,
  startEgressProxy,
} from '../../../support/gateway/egress-proxy.ts';
import { GATEWAY_TOKEN } from '../../../support/gateway/model-gateway-fixture.ts';

const TLS = new URL('../../../fixtures/tls/', import.meta.url);
const HOST = 'api.example.com:443';
const SECRET = 'the-secret-of-search';

/** What the server got, without the credential itself. */
function asked({ headers }: IncomingMessage): object {
  return { credential: headers.authorization === `Bearer ${SECRET}` ? 'sent' : 'none', found: 1 };
}

function capability(name: string, url: string, connection?: string): CatalogObject {
  const metadata = { name, namespace: 'team-a', uid: `uid-${name}`, generation: 1 };
  const schema = { type: 'object', properties: { text: { type: 'string' } } };
  const spec = {
    type: 'Tool',
    description: 'Finds.',
    hasSideEffects: false,
    tool: { name: name.replaceAll('-', '_'), category: 'web', action: 'code:read', inputSchema: schema },
    backend: { http: { url, ...(connection === undefined ? {} : { connection }) } },
  };
  return pruneCapability({ metadata, spec } as CatalogObject);
}

/** Connections of agents through the egress proxy, decided and charged by a real gateway. */
export function egressSuite(open: () => EgressSetup): void {
  describe('connections through the egress proxy', () => {
    const stop = new AbortController();
    const client = new ProxyClient();
    let target: Server;
    let proxy: Awaited<ReturnType<typeof startEgressProxy>>;

    before(async () => {
      const [cert, key] = await Promise.all(
        ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
      );
      target = createServer({ cert: cert ?? '', key: key ?? '' }, (request, response) => {
        const { url } = request;
        if (url === '/echo') response.setHeader('content-type', 'application/json').end(JSON.stringify(asked(request)));
        else if (url === '/moved')
          response.writeHead(302, { location: 'https://169.254.169.254/latest/meta-data/' }).end();
        else if (url === '/held') response.write('a');
        else response.end(Buffer.alloc(Number(url?.slice(1)), 'a'));
      });
      await new Promise<void>((done) => target.listen(0, '127.0.0.1', done));
      const { port } = target.address() as AddressInfo;
      proxy = await startEgressProxy(open(), () => port, stop.signal);
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

    it('the constraints of an agent close its network under an open policy, and an edit opens it again', async () => {
      setAgent('constrained', { constraints: { network: 'None' } });
      await refused('constrained', HOST, /403 .*TEMPER_POLICY_DENIED.*spec\.constraints\.network of agent/s);
      setAgent('constrained', { constraints: { network: 'Allowlist', terminal: 'None' } });
      assert.match(await client.get(HOST, '/5', head('constrained')), /^HTTP\/1\.1 200 .*aaaaa$/s);
      setAgent('constrained', { constraints: { network: 'None' } });
      await refused('constrained', HOST, /403 .*TEMPER_POLICY_DENIED.*spec\.constraints\.network of agent/s);
    });

    it('the fetch of a tool in a pod passes the proxy, and has the error of the gateway where it does not', async () => {
      setAgent('smith');
      const fetchOfTool = egressFetch({
        files: egressEndpoints(proxy, 'smith'),
        deliveryToken: () => open().fixture.deliveryToken('smith'),
        clock: systemClock,
      });
      const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' };
      const rules = { hostDenialReason: () => undefined };
      const { status, bytes } = await fetchOfTool({ url: 'https://api.example.com/7' }, rules, op);
      assert.deepEqual([status, bytes.toString()], [200, 'aaaaaaa']);
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
      const hosts = Object.keys(INTERNAL_NAMES);
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

    describe('of calls that a gateway executes', () => {
      let tools: CapabilityTools;

      before(async () => {
        const { fixture } = open();
        const credentialFile = join(fixture.folder, 'search-token');
        await writeFile(credentialFile, SECRET);
        tools = brokeredCapabilities(open(), proxy, {
          connections: [{ name: 'search', hosts: [HOST], namespaces: ['team-a'], credentialFile }],
          signal: stop.signal,
        });
        const objects = [
          capability('find', 'https://api.example.com/echo', 'search'),
          capability('find-open', 'https://api.example.com/echo'),
          capability('find-moved', 'https://api.example.com/moved', 'search'),
          capability('find-large', 'https://api.example.com/2000000', 'search'),
        ];
        for (const object of objects)
          tools.capabilityChanged({ type: 'added', key: `team-a/${object.metadata.name}`, object });
        fixture.brokered = tools;
        fixture.setPolicy('brokered', { level: { initial: 'standard' }, tainted: { tools: ['no_tool'] } });
      });
      after(() => {
        open().fixture.brokered = NO_BROKERED_TOOLS;
      });

      const callTool = (agent: string, name: string, session = 's1', message = 'message-1') =>
        callBrokered({ ...open(), tools }, { agent, name, input: { text: 'a' }, session, message });
      const failsWith = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
        assert.rejects(work, (error) => {
          assert.ok(isTemperError(error, code), String(error));
          assert.match(error.message, words);
          return true;
        });
      const setUser = (name: string, spec: object = {}): void => {
        open().fixture.setAgent(name, { grants: { tools: ['*'] }, ...spec }, 'brokered');
      };

      it('an agent without a grant for the host uses it through the connection of its namespace, and its session is tainted', async () => {
        setUser('caller');
        const { output, signatures } = await callTool('caller', 'find', 's-tainted');
        assert.deepEqual(output, { credential: 'sent', found: 1 });
        assert.equal(signatures.length, 1);
        const page = await open().gateway.metrics();
        assert.match(page, /temper_brokered_calls_total\{outcome="ok"\} 1/);
        const [line] = proxy.lines.filter(({ agent, outcome }) => agent === 'caller' && outcome === 'ok');
        assert.deepEqual([line?.['host'], line?.['session']], ['api.example.com', 's-tainted']);
        // The next call of the session is one of a tainted session, which this policy refuses.
        await failsWith('TEMPER_POLICY_DENIED', callTool('caller', 'find', 's-tainted', 'message-2'), /untrusted/);
      });

      it('an agent whose constraints close the network has no call executed, also through a connection', async () => {
        setUser('constrained-caller', { constraints: { network: 'None' } });
        const called = callTool('constrained-caller', 'find');
        await failsWith('TEMPER_POLICY_DENIED', called, /spec\.constraints\.network of agent "constrained-caller"/);
        assert.deepEqual(
          proxy.lines.filter(({ agent }) => agent === 'constrained-caller'),
          [],
        );
        setUser('constrained-caller', { constraints: { git: 'LocalOnly' } });
        assert.deepEqual((await callTool('constrained-caller', 'find')).output, { credential: 'sent', found: 1 });
      });

      it('without a connection the policy of the agent decides about the host', async () => {
        setUser('walker');
        await failsWith('TEMPER_POLICY_DENIED', callTool('walker', 'find_open'), /api\.example\.com/);
      });

      it('redirects and answers beyond the limit fail, and bring nothing to the pod', async () => {
        setUser('victim');
        await failsWith('TEMPER_FETCH_DENIED', callTool('victim', 'find_moved', 's-1'), /redirects/);
        await failsWith('TEMPER_FETCH_FAILED', callTool('victim', 'find_large', 's-2', 'message-3'), /larger than/);
      });

      it('a suspended agent has no call executed, and a used quota ends its calls', async () => {
        setUser('sleeper', { suspend: true });
        await failsWith('TEMPER_AGENT_SUSPENDED', callTool('sleeper', 'find'), /suspended/);
        setUser('limited', { quotas: { toolCallsPerMinute: 1 } });
        await callTool('limited', 'find', 's-1', 'message-1');
        await failsWith('TEMPER_QUOTA_EXCEEDED', callTool('limited', 'find', 's-2', 'message-2'), /toolCallsPerMinute/);
      });

      /** As a gateway signs it for a connection of a call. */
      const connectionToken = (agent: string, namespace = 'team-a'): string =>
        open().fixture.deliveryTokens.sign({
          agentUid: `uid-${agent}`,
          agent,
          namespace,
          podUid: `pod-${agent}`,
          message: 'message-1',
          session: 's1',
          root: 'root-1',
          depth: 0,
          deadline: new Date(Date.now() + 600_000).toISOString(),
          at: { streamSequence: 1, deliveries: 1 },
          connects: { host: 'api.example.com', port: 443, by: 'Connection' },
        });

      it('a namespace that has all the connections it may have through a gateway leaves another one its own', async () => {
        const { fixture } = open();
        const hoarders = ['hoarder-1', 'hoarder-2', 'hoarder-3', 'hoarder-4'];
        for (const hoarder of hoarders) setUser(hoarder);
        fixture.setPolicy('brokered', { level: { initial: 'standard' } }, 'team-b');
        fixture.setAgent('bystander', {}, 'brokered', 'team-b');
        const hold = (agent: string) => client.getAndHold(HOST, '/held', head(GATEWAY_TOKEN, connectionToken(agent)));
        const limit = pLimit(8);
        const held = hoarders
          .slice(0, 3)
          .flatMap((agent) => Array.from({ length: 32 }, (): { agent: string; socket?: TLSSocket } => ({ agent })));
        const refill = async (): Promise<void> => {
          const missing = held.filter(({ socket }) => socket?.destroyed !== false);
          const opening = missing.map((one) => limit(async () => (one.socket = (await hold(one.agent)).socket)));
          await Promise.allSettled(opening);
        };
        const whenFull = /429 .*TEMPER_RATE_LIMITED.*namespace team-a/s;
        // On a slow machine the proxy ends connections that no gateway confirms in time; they are opened again.
        const fill = async (): Promise<void> => {
          await refill();
          await refused(GATEWAY_TOKEN, HOST, whenFull, connectionToken('hoarder-4'));
        };
        await pollAssertion('all connections of the namespace', fill, { timeoutMs: 300_000 });
        const answer = await client.get(HOST, '/5', head(GATEWAY_TOKEN, connectionToken('bystander', 'team-b')));
        assert.match(answer, /^HTTP\/1\.1 200 .*aaaaa$/s);
        for (const { socket } of held) socket?.destroy();
        await pollAssertion('the line of the request', () => {
          const lines = proxy.lines.filter(({ agent }) => agent === 'bystander');
          assert.deepEqual(
            lines.map(({ caller, namespace, outcome }) => [caller, namespace, outcome]),
            [['Gateway', 'team-b', 'ok']],
          );
        });
      });

      it('no pod uses the token that a gateway made for a connection', async () => {
        setUser('thief');
        const { fixture } = open();
        const token = connectionToken('thief');
        await refused('thief', HOST, /407 .*TEMPER_DELIVERY_TOKEN_INVALID.*of a gateway/s, token);
        await refused(GATEWAY_TOKEN, 'other.example.com:443', /407 .*TEMPER_DELIVERY_TOKEN_INVALID.*this host/s, token);
        await refused(GATEWAY_TOKEN, HOST, /407 .*TEMPER_DELIVERY_TOKEN_INVALID/s, fixture.deliveryToken('thief'));
      });
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
