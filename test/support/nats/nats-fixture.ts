import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createUser } from '@nats-io/nkeys';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { type JetStreamConnection, connectNats } from '../../../src/nats/connection/connection.ts';
import { type NatsPermissions, type NatsUser, serverConfig } from '../../../src/nats/server/server-config.ts';
import type { NewMessage } from '../../../src/nats/inbox/inbox.ts';
import type { SessionEvent } from '../../../src/nats/session-events.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { type NatsServer, startNats } from '../../cluster/nats-server.ts';
import { freePorts } from '../../cluster/process.ts';

export const STORE_BYTES = 256 * 1_024 * 1_024;

/** A nats-server with the configuration and the users of an installation. */
export interface NatsFixture extends AsyncDisposable {
  readonly server: NatsServer;
  readonly url: string;
  readonly caFile: string;
  readonly monitoring: string;
  seedFile(user: string): string;
  /** Opens another connection as `operator`, `gateway` or one of `users`. Disposing the fixture closes it. */
  connect(user: string, clock?: Clock): Promise<JetStreamConnection>;
  /** True when a client subscribes to the subject: it waits for a notification. */
  hasSubscription(subject: string): Promise<boolean>;
  /** Kills the server and removes its store; `server.restart()` then starts with an empty store. */
  loseStore(): Promise<void>;
}

/** A part of what nats-server reports about its connections. */
interface Connections {
  connections: { subscriptions_list?: string[] }[];
}

export interface NatsFixtureOptions {
  users?: Record<string, NatsPermissions>;
  /** Creates no streams and buckets. */
  withoutTopology?: true;
  /** Size of the store; `STORE_BYTES` by default. */
  storeBytes?: number;
}

export async function startNatsFixture({
  users = {},
  withoutTopology,
  storeBytes = STORE_BYTES,
}: NatsFixtureOptions = {}): Promise<NatsFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bus-'));
  await writeCertificate(folder);
  const storeFolder = join(folder, 'store');
  await mkdir(storeFolder);
  const busUsers = await Promise.all(
    ['operator', 'gateway', ...Object.keys(users)].map(async (name): Promise<NatsUser> => {
      const pair = createUser();
      await writeFile(join(folder, `${name}.nk`), `${Buffer.from(pair.getSeed()).toString()}\n`, { mode: 0o600 });
      const permissions = users[name];
      return { name, publicKey: pair.getPublicKey(), ...(permissions === undefined ? {} : { permissions }) };
    }),
  );
  const { monitoringPort } = await freePorts('monitoringPort');
  const config = serverConfig({
    users: busUsers,
    certificateFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
    storeFolder,
    storeBytes,
    serverName: 'test',
    monitoringPort,
  });
  const server = await startNats({ config });
  const connections: JetStreamConnection[] = [];
  const caFile = join(folder, 'tls.crt');
  const url = `tls://127.0.0.1:${server.port}`;
  const seedFile = (user: string): string => join(folder, `${user}.nk`);
  const connect = async (user: string, clock: Clock = systemClock): Promise<JetStreamConnection> => {
    const signal = AbortSignal.timeout(30_000);
    const options = { servers: url, name: 'test', user, seedFile: seedFile(user), caFile, clock, signal };
    const connection = await connectNats(options);
    connections.push(connection);
    return connection;
  };
  const dispose = async (): Promise<void> => {
    await Promise.all(connections.map((connection) => connection[Symbol.asyncDispose]()));
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  };
  const loseStore = async (): Promise<void> => {
    await server.kill();
    await rm(storeFolder, { recursive: true, force: true });
  };
  try {
    if (!withoutTopology) await reconcileTopology(await connect('operator'), { storeBytes });
  } catch (error) {
    const log = await server.log();
    await dispose();
    throw new Error(`nats-server did not start: ${log.slice(-2_000)}`, { cause: error });
  }
  const monitoring = `http://127.0.0.1:${monitoringPort}`;
  const hasSubscription = async (subject: string): Promise<boolean> => {
    const { connections } = (await (await fetch(`${monitoring}/connz?subs=1`)).json()) as Connections;
    return connections.some(({ subscriptions_list: list = [] }) => list.includes(subject));
  };
  return {
    server,
    url,
    caFile,
    monitoring,
    seedFile,
    connect,
    hasSubscription,
    loseStore,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Writes a self-signed certificate of 127.0.0.1, `tls.crt` and `tls.key`. */
export async function writeCertificate(folder: string): Promise<void> {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'tls.key'];
  const certificate = [
    '-subj',
    '/CN=nats',
    '-addext',
    'subjectAltName=DNS:localhost,IP:127.0.0.1',
    '-days',
    '2',
    '-out',
    'tls.crt',
  ];
  await promisify(execFile)('openssl', ['req', '-x509', ...key, ...certificate], { cwd: folder });
}

let uids = 0;
/** A new uid in the form of a Kubernetes uid. */
export function newUid(): string {
  uids += 1;
  return `00000000-0000-4000-8000-${String(uids).padStart(12, '0')}`;
}

export function newMessage(text: string, session = 's-1'): NewMessage {
  const deadline = new Date(Date.now() + 3_600_000).toISOString();
  return { from: 'user/a', to: 'agent', session, text, depth: 0, deadline, time: new Date().toISOString() };
}

/** An event as a pod reports it. */
export function messageEvent(text: string, session = 's'): SessionEvent {
  const stamp = { time: '2026-11-21T10:00:00Z', agent: 'a', session, rootMessage: 'r' };
  return { kind: 'event', event: { type: 'message', text, delta: false, ...stamp } };
}
