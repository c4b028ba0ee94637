import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RELEASE_OBJECTS } from '../../src/api/cluster.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { type BusConnection, connectBus } from '../../src/nats/connection.ts';
import { type BusParts, openBus } from '../../src/operator/bus/open.ts';
import type { OperatorConfig } from '../../src/operator/config.ts';
import type { KubeRequest } from '../../src/kube/transport.ts';
import { type PlainObject, TYPES } from '../../src/operator/kube-types.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';
import { type NatsServer, startNats } from '../cluster/nats-server.ts';
import { freePorts } from '../cluster/process.ts';
import {
  CONFIG,
  counting,
  eventually,
  RELEASE,
  type Running,
  startOperator,
  startWorld,
  type World,
} from './operator-world.ts';

const NEVER = new AbortController().signal;
const STORE_BYTES = 256 * 1_024 * 1_024;
/** What the chart mounts into the pods of each component, by folder. */
const MOUNTS = {
  'nats-config': { secret: RELEASE_OBJECTS.natsConfiguration, keys: ['nats-server.conf'] },
  'nats-tls': { secret: RELEASE_OBJECTS.natsCertificate, keys: ['tls.crt', 'tls.key', 'ca.crt'] },
  operator: { secret: RELEASE_OBJECTS.natsUsers, keys: ['operator.nk'] },
  'operator-ca': { secret: RELEASE_OBJECTS.natsCertificate, keys: ['ca.crt'] },
  gateway: { secret: RELEASE_OBJECTS.natsUsers, keys: ['gateway.nk'] },
} as const;

/** An API server, the operator with its real bus parts, and a nats-server that runs from the Secrets that operator writes. */
export interface Installation extends AsyncDisposable {
  readonly world: World;
  readonly config: OperatorConfig;
  readonly log: string[];
  /** What operators asked of the API server. */
  readonly seen: KubeRequest[];
  readonly storeFolder: string;
  operator: OperatorProcess;
  /** What `temper serve operator` makes of the configuration. */
  startOperator(clock?: Clock): Promise<OperatorProcess>;
  /** Writes what is in the Secrets where the pods see it, as the kubelet does some time after a change. */
  mount(): Promise<void>;
  /** Mounts and starts the server; it can be started once. */
  startServer(): Promise<NatsServer>;
  /** Ends the server and removes its store. */
  wipe(): Promise<void>;
  /** As a gateway connects, with what the chart mounts for it. */
  gateway(): Promise<BusConnection>;
  secret(name: string): Promise<Record<string, string> | undefined>;
}

export interface OperatorProcess extends AsyncDisposable {
  readonly parts: BusParts;
  readonly running: Running;
}

const NO_BUS_METRICS = { count() {}, gauge() {}, observe() {}, watch() {} };

export async function startInstallation(options: Partial<OperatorConfig> = {}): Promise<Installation> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-installation-'));
  const world = await startWorld({ controllerManager: true });
  await createService(world);
  const { nats: port, monitoring } = await freePorts('nats', 'monitoring');
  const nats = {
    url: `tls://localhost:${port}`,
    service: RELEASE_OBJECTS.nats,
    server: { storeBytes: STORE_BYTES, extraNames: ['localhost'] },
    replicas: 1,
    seedFile: join(folder, 'operator', 'operator.nk'),
    caFile: join(folder, 'operator-ca', 'ca.crt'),
  };
  const config: OperatorConfig = { ...CONFIG, ...options, nats };
  const log: string[] = [];
  const seen: KubeRequest[] = [];
  let server: NatsServer | undefined;
  const connections: BusConnection[] = [];

  const secret = async (name: string) => {
    const found = await world.client.get<PlainObject>(TYPES.secrets, { namespace: RELEASE, name }, NEVER);
    if (found === undefined) return undefined;
    const data = Object.entries((found['data'] ?? {}) as Record<string, string>);
    return Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
  };
  const mount = async () => {
    for (const [where, { secret: name, keys }] of Object.entries(MOUNTS)) {
      const data = await eventually(
        () => secret(name),
        (found) => found !== undefined,
        `Secret ${name}`,
      );
      await mkdir(join(folder, where), { recursive: true });
      for (const key of keys) {
        const text = data?.[key];
        if (text === undefined) throw new Error(`Secret ${name} has no ${key}`);
        await writeFile(join(folder, where, key), key === 'nats-server.conf' ? adapted(text) : text, { mode: 0o600 });
      }
    }
  };
  /** The paths of the pod as paths of this machine. */
  const adapted = (text: string) =>
    text
      .replaceAll('"/etc/nats-tls/', `"${folder}/nats-tls/`)
      .replaceAll('"/data"', `"${folder}/store"`)
      .replace('"127.0.0.1:8222"', `"127.0.0.1:${monitoring}"`);

  const start = async (clock: Clock = systemClock): Promise<OperatorProcess> => {
    const logger = createLogger({
      level: 'debug',
      destination: { write: (line: string) => void log.push(line) },
      secrets: createSecrets(),
    });
    const parts = openBus(nats, { clock, log: logger, metrics: NO_BUS_METRICS });
    const running = await startOperator(world, config, {
      clock,
      log: logger,
      ...parts,
      wrap: (transport) => counting(transport, seen),
    });
    const end = async () => {
      await running.stop();
      await parts[Symbol.asyncDispose]();
    };
    return { parts, running, [Symbol.asyncDispose]: end };
  };
  const installation: Installation = {
    world,
    config,
    log,
    seen,
    storeFolder: join(folder, 'store'),
    operator: await start(),
    startOperator: start,
    mount,
    secret,
    async startServer() {
      await mount();
      await mkdir(join(folder, 'store'), { recursive: true });
      server = await startNats({ configFile: join(folder, 'nats-config', 'nats-server.conf'), port });
      return server;
    },
    async wipe() {
      await server?.kill();
      await rm(join(folder, 'store'), { recursive: true, force: true });
    },
    async gateway() {
      const connection = await connectBus({
        servers: [nats.url],
        seedFile: join(folder, 'gateway', 'gateway.nk'),
        caFile: join(folder, 'operator-ca', 'ca.crt'),
        name: 'temper-gateway',
        user: 'gateway',
        clock: systemClock,
        signal: AbortSignal.timeout(30_000),
      });
      connections.push(connection);
      return connection;
    },
    async [Symbol.asyncDispose]() {
      for (const connection of connections) await connection[Symbol.asyncDispose]();
      await installation.operator[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return installation;
}

async function createService({ client }: World): Promise<void> {
  const spec = { ports: [{ port: 4222 }], selector: { 'app.kubernetes.io/component': 'nats' } };
  const metadata = { name: RELEASE_OBJECTS.nats, namespace: RELEASE };
  await client.create(TYPES.services, { apiVersion: 'v1', kind: 'Service', metadata, spec }, NEVER);
}
