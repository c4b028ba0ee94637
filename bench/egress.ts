import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { EGRESS_API_PATHS } from '../src/gateway-api/egress/egress-api.ts';
import { DELIVERY_TOKEN_HEADER } from '../src/gateway-api/pod-api.ts';
import { issueTlsIdentity, type TlsIdentity, writeGatewayConfig } from '../src/gateway-client/certificates.testing.ts';
import { connectThroughProxy } from '../src/net/proxied-connection.ts';
import { validateTarget } from '../src/net/targets.ts';
import { type ProxyConnector, proxyConnector } from '../src/net/tunnel.ts';
import { NEVER_ABORTED } from '../test/support/stubs.ts';
import type { BenchRow } from './row.ts';

const HOST = 'api.example.com';
const TARGET = validateTarget(`https://${HOST}/`, { hostDenialReason: () => undefined });
const PROXY = 'temper-egress';
const SMALL_REQUESTS = 60;
const LARGE_BYTES = 64 * 1_048_576;
const CONNECTIONS = 500;
const PER_ADDRESS = 20;
/** Of large responses. */
const ROUNDS = 2;
const MIB = 1_048_576;
/** Those of the image, and one to measure without what is to be collected. */
const FLAGS = ['--max-semi-space-size=2', '--expose-gc'];
/** The goal is 150 MiB for the whole process of the image, which needs 90 of them without a connection. */
const MAX_GROWTH_MIB = 60;
const MAX_SMALL_RATIO = 6;
const MIN_THROUGHPUT_PERCENT = 30;

/** The egress proxy beside a direct connection: TLS to the same server, on one machine. The gateway is a server that allows everything at once. */
export async function benchEgress(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-egress-'));
  const [target, own] = await Promise.all([
    issueTlsIdentity(folder, 'target', HOST),
    issueTlsIdentity(folder, 'proxy', PROXY),
  ]);
  const servers = [await listen(targetServer(target)), await listen(gatewayServer(own))];
  const [targetPort = 0, gatewayPort = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  const url = `https://127.0.0.1:${gatewayPort}`;
  await writeGatewayConfig(folder, { url, name: PROXY, authority: own.authority, token: 'bench' });
  const child = fork(join(import.meta.dirname, 'egress-holder.ts'), [folder, String(targetPort)], { execArgv: FLAGS });
  try {
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    const toProxy = proxyConnector({ serverName: PROXY, ca: own.authority });
    const setup = { targetPort, proxyPort: port, toProxy, trust: createSecureContext({ ca: target.authority }) };
    // First, because a process keeps memory of large responses.
    const connections = await many(setup, child);
    return [await small(setup), await large(setup, child), connections];
  } finally {
    child.disconnect();
    await once(child, 'exit');
    for (const server of servers) server.close().closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Setup {
  targetPort: number;
  proxyPort: number;
  toProxy: ProxyConnector;
  trust: SecureContext;
}

/** A request with a connection of its own, as the `fetch` of a tool makes it. */
async function small(setup: Setup): Promise<BenchRow> {
  const direct: number[] = [];
  const proxied: number[] = [];
  for (let index = 0; index < SMALL_REQUESTS; index += 1) {
    direct.push(await timed(async () => read(await openDirect(setup), '/1024')));
    proxied.push(await timed(async () => read(await openProxied(setup, index % PER_ADDRESS), '/1024')));
  }
  const [base, through] = [median(direct), median(proxied)];
  const figures = {
    direct: `${base.toFixed(2)} ms p50`,
    'through the proxy': `${through.toFixed(2)} ms p50`,
    more: `${(through - base).toFixed(2)} ms (goal 3 ms)`,
  };
  const met = through <= MAX_SMALL_RATIO * base;
  return { name: 'egress: a small request', figures, limit: `at most ${MAX_SMALL_RATIO} times as long`, met };
}

/** The client and the host share a thread. The client of the proxy encrypts twice, so it cannot reach the rate of a direct one there. */
async function large(setup: Setup, child: ChildProcess): Promise<BenchRow> {
  const path = `/${LARGE_BYTES}`;
  const rate = (milliseconds: number): number => LARGE_BYTES / MIB / (milliseconds / 1_000);
  // One after the other, twice, because a machine may change its speed.
  const rates = { direct: [] as number[], proxied: [] as number[] };
  const before = await usageOf(child);
  for (let round = 0; round < ROUNDS; round += 1) {
    rates.direct.push(rate(await timed(async () => read(await openDirect(setup), path))));
    rates.proxied.push(rate(await timed(async () => read(await openProxied(setup, PER_ADDRESS + round), path))));
  }
  const cpuMs = (await usageOf(child)).cpuMs - before.cpuMs;
  const [direct, proxied] = [Math.max(...rates.direct), Math.max(...rates.proxied)];
  const percent = (proxied / direct) * 100;
  const figures = {
    direct: `${direct.toFixed(0)} MiB/s`,
    'through the proxy': `${proxied.toFixed(0)} MiB/s`,
    part: `${percent.toFixed(0)} % (goal 70 %)`,
    'a core of the proxy': `${rate(cpuMs / ROUNDS).toFixed(0)} MiB/s`,
  };
  const met = percent >= MIN_THROUGHPUT_PERCENT;
  return { name: 'egress: a large response', figures, limit: `at least ${MIN_THROUGHPUT_PERCENT} %`, met };
}

/** Memory of the process, which runs from the sources, after its start and with many connections that have carried a request each. */
async function many(setup: Setup, child: ChildProcess): Promise<BenchRow> {
  const { rss: before } = await usageOf(child);
  const sockets: Socket[] = [];
  for (let index = 0; index < CONNECTIONS; index += 1) {
    const socket = await openProxied(setup, 2 * PER_ADDRESS + Math.floor(index / PER_ADDRESS));
    sockets.push(socket);
    await read(socket, '/1024', false);
  }
  const { rss: after } = await usageOf(child);
  for (const socket of sockets) socket.destroy();
  const figures = {
    before: `${(before / MIB).toFixed(0)} MiB`,
    'with them': `${(after / MIB).toFixed(0)} MiB`,
    'for each': `${((after - before) / CONNECTIONS / 1_024).toFixed(0)} KiB`,
  };
  const met = sockets.length === CONNECTIONS && after - before <= MAX_GROWTH_MIB * MIB;
  return { name: `egress: ${CONNECTIONS} connections`, figures, limit: `at most ${MAX_GROWTH_MIB} MiB more`, met };
}

/** Both trust the authority of the host by a context that is made once, as a pod does. */
async function openDirect({ targetPort, trust }: Setup): Promise<TLSSocket> {
  return secured(connect({ host: '127.0.0.1', port: targetPort, servername: HOST, secureContext: trust }));
}

/** As a pod does, but from one of many addresses, because an address has limits. */
function openProxied({ proxyPort, toProxy, trust }: Setup, address: number): Promise<Socket> {
  const localAddress = `127.0.1.${address + 1}`;
  const proxy = {
    origin: `https://127.0.0.1:${proxyPort}`,
    connect: ((options, done) => toProxy({ ...options, localAddress }, done)) satisfies ProxyConnector,
    token: 'a.b.c',
  };
  const headers = { [DELIVERY_TOKEN_HEADER]: 'd1.x.y' };
  return connectThroughProxy(TARGET, { proxy, headers, trust }, NEVER_ABORTED);
}

async function secured(socket: TLSSocket): Promise<TLSSocket> {
  await once(socket, 'secureConnect');
  return socket;
}

/** Reads the response, whose path says how long its body is. */
async function read(socket: Socket, path: string, isLast = true): Promise<void> {
  const expected = Number(path.slice(1));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  let received = 0;
  await new Promise<void>((done, fail) => {
    const onData = (chunk: Buffer): void => {
      received += chunk.length;
      if (received < expected) return;
      socket.off('data', onData);
      done();
    };
    socket.on('data', onData).once('error', fail);
  });
  if (isLast) socket.destroy();
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Resident bytes, and the processor time so far. */
interface Usage {
  rss: number;
  cpuMs: number;
}

async function usageOf(child: ChildProcess): Promise<Usage> {
  child.send('usage');
  const [usage] = (await once(child, 'message')) as [Usage];
  return usage;
}

function targetServer({ key, certificate: cert }: TlsIdentity): Server {
  return createServer({ key, cert }, ({ url = '' }, response) => {
    response.end(Buffer.alloc(Number(url.slice(1)), 'a'));
  });
}

/** One agent for each address. */
function gatewayServer({ key, certificate: cert }: TlsIdentity): Server {
  return createServer({ key, cert }, (request, response) => {
    const answering = async (): Promise<void> => {
      const { address = '' } = (await json(request)) as { address?: string };
      const owner = { agent: 'a', agentUid: address, namespace: 'n', session: 's', message: 'm', remainingMs: 600_000 };
      const answer = request.url === EGRESS_API_PATHS.authorize ? owner : { ended: [] };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    };
    void answering();
  });
}

async function listen(server: Server): Promise<Server> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}
