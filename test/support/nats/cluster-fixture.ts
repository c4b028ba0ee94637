import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createUser } from '@nats-io/nkeys';
import { systemClock } from '../../../src/lib/clock.ts';
import { type JetStreamConnection, connectNats } from '../../../src/nats/connection/connection.ts';
import { SERVER_NAME_VARIABLE } from '../../../src/nats/server/cluster-config.ts';
import { serverConfig } from '../../../src/nats/server/server-config.ts';
import type { KeyPair } from '../../../src/operator/pki/certificates.ts';
import { createCa, issueCertificate } from '../../../src/operator/pki/certificate-issuer.ts';
import type { DesiredNatsServer } from '../../../src/operator/pki/nats-reload.ts';
import { type NatsServer, startNats } from '../../cluster/nats-server.ts';
import { freePorts } from '../../cluster/process.ts';
import { pollAssertion } from '../poll.ts';
import { RouteProxies } from './route-proxies.ts';

export const CLUSTER_STORE_BYTES = 128 * 1_024 * 1_024;
const CERTIFICATE_LIFETIME_MS = 86_400_000;
const START_TIMEOUT_MS = 120_000;
const SIZE = 3;

/** Three nats-servers with the configuration and the kind of certificate that the operator writes. Disposing stops all. */
export interface NatsClusterFixture extends AsyncDisposable {
  readonly servers: readonly NatsServer[];
  /** Folder of the files of all servers, with `tls.crt`, `tls.key` and `ca.crt`. */
  readonly folder: string;
  readonly ca: KeyPair;
  readonly desired: DesiredNatsServer;
  /** Opens a connection as `operator` or `gateway`, to one server or to any. */
  connect(user: 'operator' | 'gateway', server?: number): Promise<JetStreamConnection>;
  /** Writes another certificate of the same CA, which no server has loaded; returns what the servers should use. */
  renewCertificate(): Promise<DesiredNatsServer>;
  /** The proxies between the servers, with the option `proxiedRoutes`. */
  readonly routes: RouteProxies | undefined;
  /** True when the server is ready for the probe with this query of `/healthz`. */
  isHealthy(server: number, query: string): Promise<boolean>;
}

export interface NatsClusterOptions {
  /** Signs the certificates; by default a new one. */
  ca?: KeyPair;
  /** Size of the disk of server 2, which is a file system in memory; needs root. By default all share the disk of the machine. */
  smallDiskBytes?: number;
  /** The servers reach each other through proxies, which can isolate a server. */
  proxiedRoutes?: boolean;
}

export async function startNatsCluster(options: NatsClusterOptions = {}): Promise<NatsClusterFixture> {
  const stack = new AsyncDisposableStack();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'temper-cluster-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    if (options.smallDiskBytes !== undefined)
      await mountDisk(join(folder, 'temper-nats-2'), options.smallDiskBytes, stack);
    return await start(folder, stack, options);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function start(
  folder: string,
  stack: AsyncDisposableStack,
  options: NatsClusterOptions,
): Promise<NatsClusterFixture> {
  const ca = options.ca ?? (await createCa('test', new Date(), CERTIFICATE_LIFETIME_MS));
  const seeds = await writeSeeds(folder);
  await writeFile(join(folder, 'ca.crt'), ca.certificate);
  let certificate = await writeCertificate(folder, ca);
  const ports = await freePorts('route0', 'route1', 'route2');
  const routePorts = [ports.route0, ports.route1, ports.route2];
  const routes = options.proxiedRoutes ? stack.use(await RouteProxies.start(routePorts)) : undefined;
  const configs = await writeConfigurations(folder, seeds, { routePorts, routes });
  const servers = await Promise.all(
    configs.map(async ({ file, name }) =>
      stack.use(await startNats({ configFile: file, env: { [SERVER_NAME_VARIABLE]: name } })),
    ),
  );
  const urls = servers.map(({ port }) => `tls://localhost:${port}`);
  const desired = (): DesiredNatsServer => ({
    servers: urls.map((url, index) => ({ name: `temper-nats-${index}`, url })),
    certificate,
    caBundle: ca.certificate,
    configuration: 'unchanged',
    operatorSeed: seeds.operator.seed,
    systemSeed: seeds.system.seed,
  });
  const connect = async (user: 'operator' | 'gateway', server?: number): Promise<JetStreamConnection> => {
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    const files = { seedFile: join(folder, `${user}.nk`), caFile: join(folder, 'ca.crt') };
    const options = { servers: server === undefined ? urls : (urls[server] ?? ''), name: 'test', user, signal };
    return stack.use(await connectNats({ ...options, ...files, clock: systemClock }));
  };
  const isHealthy = async (server: number, query: string): Promise<boolean> => {
    const port = configs[server]?.monitoringPort ?? 0;
    const answer = await fetch(`http://127.0.0.1:${port}/healthz?${query}`).catch(() => undefined);
    return answer?.ok ?? false;
  };
  const renewCertificate = async (): Promise<DesiredNatsServer> => {
    certificate = await writeCertificate(folder, ca);
    return desired();
  };
  await pollAssertion(
    'a leader of the cluster',
    async () => {
      for (let server = 0; server < SIZE; server += 1) {
        if (!(await isHealthy(server, 'js-server-only=true'))) throw new Error(await servers[server]?.log());
      }
    },
    { timeoutMs: START_TIMEOUT_MS },
  );
  const dispose = () => stack.disposeAsync();
  return {
    servers,
    folder,
    ca,
    desired: desired(),
    connect,
    renewCertificate,
    routes,
    isHealthy,
    [Symbol.asyncDispose]: dispose,
  };
}

async function mountDisk(path: string, bytes: number, stack: AsyncDisposableStack): Promise<void> {
  await mkdir(path);
  await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'temper-test', path]);
  stack.defer(async () => void (await promisify(execFile)('umount', [path])));
}

async function writeSeeds(folder: string) {
  const user = async (name: string) => {
    const pair = createUser();
    const seed = Buffer.from(pair.getSeed()).toString();
    await writeFile(join(folder, `${name}.nk`), `${seed}\n`, { mode: 0o600 });
    return { seed, publicKey: pair.getPublicKey() };
  };
  return { operator: await user('operator'), gateway: await user('gateway'), system: await user('system') };
}

async function writeCertificate(folder: string, ca: KeyPair): Promise<string> {
  const names = { names: ['localhost'], addresses: ['127.0.0.1'], isPeer: true };
  const { certificate, key } = await issueCertificate(ca, names, new Date(), CERTIFICATE_LIFETIME_MS);
  await writeFile(join(folder, 'tls.key'), key, { mode: 0o600 });
  await writeFile(join(folder, 'tls.crt'), certificate);
  return certificate;
}

/** One configuration per server: on one machine their ports and folders differ. */
async function writeConfigurations(
  folder: string,
  seeds: Awaited<ReturnType<typeof writeSeeds>>,
  { routePorts, routes: proxies }: { routePorts: readonly number[]; routes: RouteProxies | undefined },
) {
  const ports = await freePorts('monitoring0', 'monitoring1', 'monitoring2');
  const monitoringPorts = [ports.monitoring0, ports.monitoring1, ports.monitoring2];
  return Promise.all(
    routePorts.map(async (port, index) => {
      const name = `temper-nats-${index}`;
      const storeFolder = join(folder, name);
      await mkdir(storeFolder, { recursive: true });
      const monitoringPort = monitoringPorts[index] ?? 0;
      const routes = routePorts.map((own, to) => {
        return `localhost:${to === index || proxies === undefined ? own : proxies.port(index, to)}`;
      });
      const text = serverConfig({
        users: [
          { name: 'operator', publicKey: seeds.operator.publicKey },
          { name: 'gateway', publicKey: seeds.gateway.publicKey },
        ],
        systemKey: seeds.system.publicKey,
        certificateFile: join(folder, 'tls.crt'),
        keyFile: join(folder, 'tls.key'),
        storeFolder,
        storeBytes: CLUSTER_STORE_BYTES,
        serverName: undefined,
        host: '127.0.0.1',
        monitoringPort,
        cluster: { port, routes, caFile: join(folder, 'ca.crt') },
      });
      const file = join(folder, `${name}.conf`);
      await writeFile(file, proxies === undefined ? text : withoutGossip(text), { mode: 0o600 });
      return { file, name, monitoringPort };
    }),
  );
}

/** Servers announce each other's routes and connect to them. With an address at which no server listens, only those of the proxies work. */
function withoutGossip(config: string): string {
  const announced = '  no_advertise: true\n';
  if (!config.includes(announced)) throw new Error('the configuration has no block of routes');
  return config.replace(announced, `${announced}  advertise: "127.0.0.1:1"\n`);
}
