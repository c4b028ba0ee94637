import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { type JetStreamConnection, connectNats } from '../../../src/nats/connection/connection.ts';
import { type OperatorNats, openOperatorNats } from '../../../src/operator/nats/open.ts';
import type { OperatorConfig } from '../../../src/operator/config.ts';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { type PlainObject, TYPES } from '../../../src/operator/kube/types.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { type NatsServer, startNats } from '../../cluster/nats-server.ts';
import { freePorts } from '../../cluster/process.ts';
import { RELEASE_NAMESPACE, startApiServerFixture, type ApiServerFixture } from '../api-server/api-server-fixture.ts';
import {
  OPERATOR_CONFIG,
  recordingTransport,
  type RunningOperator,
  startOperator,
} from '../operator/start-operator.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../stubs.ts';

const STORE_BYTES = 256 * 1_024 * 1_024;
/** The Secrets and keys that the chart mounts into the pods, by folder. */
const MOUNTS = {
  'nats-config': { secret: RELEASE_OBJECTS.natsConfiguration, keys: ['nats-server.conf'] },
  'nats-tls': { secret: RELEASE_OBJECTS.natsCertificate, keys: ['tls.crt', 'tls.key', 'ca.crt'] },
  operator: { secret: RELEASE_OBJECTS.natsUsers, keys: ['operator.nk'] },
  'operator-ca': { secret: RELEASE_OBJECTS.natsCertificate, keys: ['ca.crt'] },
  gateway: { secret: RELEASE_OBJECTS.natsUsers, keys: ['gateway.nk'] },
} as const;

/** An API server, an operator with its real NATS modules, and a nats-server configured by the Secrets that this operator writes. */
export interface OperatorNatsFixture extends AsyncDisposable {
  readonly apiServer: ApiServerFixture;
  readonly config: OperatorConfig;
  readonly logLines: string[];
  /** All requests of operators to the API server. */
  readonly apiRequests: KubeRequest[];
  readonly storeFolder: string;
  operator: OperatorProcess;
  /** Starts an operator as `temper serve operator` does with the configuration. */
  startOperator(clock?: Clock): Promise<OperatorProcess>;
  /** Copies the Secrets into the mounted folders, as the kubelet does some time after a change. */
  mountSecrets(): Promise<void>;
  /** Mounts the Secrets and starts nats-server. Call it once. */
  startServer(): Promise<NatsServer>;
  /** Kills nats-server and removes its store. */
  loseStore(): Promise<void>;
  /** Connects as a gateway does, with the files that the chart mounts for it. */
  connectGateway(): Promise<JetStreamConnection>;
  readSecret(name: string): Promise<Record<string, string> | undefined>;
}

export interface OperatorProcess extends AsyncDisposable {
  readonly parts: OperatorNats;
  readonly running: RunningOperator;
}

export async function startOperatorNatsFixture(options: Partial<OperatorConfig> = {}): Promise<OperatorNatsFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-operator-nats-'));
  const apiServer = await startApiServerFixture({ controllerManager: true });
  await createService(apiServer);
  const { nats: port, monitoring } = await freePorts('nats', 'monitoring');
  const nats = {
    url: `tls://localhost:${port}`,
    service: RELEASE_OBJECTS.nats,
    server: { storeBytes: STORE_BYTES, extraNames: ['localhost'] },
    replicas: 1,
    // Data of a deleted agent is deleted at the second look.
    sweep: { afterHours: 0 },
    seedFile: join(folder, 'operator', 'operator.nk'),
    caFile: join(folder, 'operator-ca', 'ca.crt'),
  };
  const config: OperatorConfig = { ...OPERATOR_CONFIG, ...options, nats };
  const logLines: string[] = [];
  const apiRequests: KubeRequest[] = [];
  let server: NatsServer | undefined;
  const connections: JetStreamConnection[] = [];

  const readSecret = async (name: string) => {
    const found = await apiServer.client.get<PlainObject>(
      TYPES.secrets,
      { namespace: RELEASE_NAMESPACE, name },
      NEVER_ABORTED,
    );
    if (found === undefined) return undefined;
    const data = Object.entries((found['data'] ?? {}) as Record<string, string>);
    return Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
  };
  const mountSecrets = async () => {
    for (const [mountName, { secret: name, keys }] of Object.entries(MOUNTS)) {
      const data = await pollValue(
        `Secret ${name}`,
        () => readSecret(name),
        (found) => found !== undefined,
      );
      await mkdir(join(folder, mountName), { recursive: true });
      for (const key of keys) {
        const text = data?.[key];
        if (text === undefined) throw new Error(`Secret ${name} has no ${key}`);
        await writeFile(join(folder, mountName, key), key === 'nats-server.conf' ? withLocalPaths(text) : text, {
          mode: 0o600,
        });
      }
    }
  };
  /** Replaces paths inside the pod by paths on this machine. */
  const withLocalPaths = (text: string) =>
    text
      .replaceAll('"/etc/nats-tls/', `"${folder}/nats-tls/`)
      .replaceAll('"/data"', `"${folder}/store"`)
      .replace('"127.0.0.1:8222"', `"127.0.0.1:${monitoring}"`);

  const start = async (clock: Clock = systemClock): Promise<OperatorProcess> => {
    const logger = createLogger({
      level: 'debug',
      destination: { write: (line: string) => void logLines.push(line) },
      secrets: createSecretRedactor(),
    });
    const parts = openOperatorNats(nats, { clock, log: logger, metrics: NO_METRICS });
    const running = await startOperator(apiServer, config, {
      clock,
      log: logger,
      ...parts,
      wrap: (transport) => recordingTransport(transport, apiRequests),
    });
    const end = async () => {
      await running.stop();
      await parts[Symbol.asyncDispose]();
    };
    return { parts, running, [Symbol.asyncDispose]: end };
  };
  const fixture: OperatorNatsFixture = {
    apiServer,
    config,
    logLines,
    apiRequests,
    storeFolder: join(folder, 'store'),
    operator: await start(),
    startOperator: start,
    mountSecrets,
    readSecret,
    async startServer() {
      await mountSecrets();
      await mkdir(join(folder, 'store'), { recursive: true });
      server = await startNats({ configFile: join(folder, 'nats-config', 'nats-server.conf'), port });
      return server;
    },
    async loseStore() {
      await server?.kill();
      await rm(join(folder, 'store'), { recursive: true, force: true });
    },
    async connectGateway() {
      const connection = await connectNats({
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
      await fixture.operator[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
      await apiServer[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return fixture;
}

async function createService({ client }: ApiServerFixture): Promise<void> {
  const spec = { ports: [{ port: 4222 }], selector: { 'app.kubernetes.io/component': 'nats' } };
  const metadata = { name: RELEASE_OBJECTS.nats, namespace: RELEASE_NAMESPACE };
  await client.create(TYPES.services, { apiVersion: 'v1', kind: 'Service', metadata, spec }, NEVER_ABORTED);
}
