import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createUser } from '@nats-io/nkeys';
import { systemClock } from '../../../src/lib/clock.ts';
import { connectNats, type JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { serverConfig } from '../../../src/nats/server/server-config.ts';
import { type NatsServer, startNats } from '../../../test/cluster/nats-server.ts';
import { freePorts } from '../../../test/cluster/process.ts';
import { mountSlowDisk, type SlowDisk } from '../../../test/cluster/slow-disk.ts';
import { writeCertificate } from '../../../test/support/nats/nats-fixture.ts';

export const STORE_BYTES = 2 * 1_024 ** 3;
const SERVERS = 3;
/** What a write or an fsync takes longer while a disk is slow. A busy network disk is that slow; a message needs several of them. */
const SLOW_DISK_MS = 200;
const TIMEOUT_MS = 60_000;

/** Streams and consumers of the server that has most of them, and the memory of all servers. */
export interface NatsUsage {
  readonly streams: number;
  readonly consumers: number;
  readonly bytes: number;
}

/** Three nats-servers with the configuration and the users of an installation, which replicate every stream. Without streams at first. */
export class NatsCluster implements AsyncDisposable {
  readonly servers: readonly NatsServer[];
  /** Of each server; empty without the option `slowDisks`. */
  readonly disks: readonly SlowDisk[];
  readonly caFile: string;
  readonly #folder: string;
  readonly #monitoring: readonly string[];
  readonly #connections: JetStreamConnection[] = [];
  readonly #atExit: () => void;

  private constructor(
    folder: string,
    servers: readonly NatsServer[],
    disks: readonly SlowDisk[],
    monitoring: readonly string[],
  ) {
    this.servers = servers;
    this.disks = disks;
    this.caFile = join(folder, 'tls.crt');
    this.#folder = folder;
    this.#monitoring = monitoring;
    // Removes the files when the run ends by a signal.
    this.#atExit = () => {
      for (const disk of disks) disk.unmount();
      rmSync(folder, { recursive: true, force: true });
    };
    process.once('exit', this.#atExit);
  }

  /** With `slowDisks`, which needs root and Linux, each server has a disk that can become slow. */
  static async start({ slowDisks = false } = {}): Promise<NatsCluster> {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'temper-bench-nats-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    await writeCertificate(folder);
    const users = await Promise.all(
      ['operator', 'gateway'].map(async (name) => {
        const pair = createUser();
        await writeFile(join(folder, `${name}.nk`), Buffer.from(pair.getSeed()), { mode: 0o600 });
        return { name, publicKey: pair.getPublicKey() };
      }),
    );
    const indexes = Array.from({ length: SERVERS }, (_, index) => index);
    const ports = Object.values(await freePorts(...indexes.flatMap((index) => [`route${index}`, `http${index}`])));
    const routePorts = ports.filter((_, index) => index % 2 === 0);
    const monitoringPorts = ports.filter((_, index) => index % 2 === 1);
    const routes = routePorts.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
    const stores = indexes.map((index) => join(folder, `store-${index}`));
    await Promise.all(stores.map((store) => mkdir(store)));
    const disks = slowDisks ? await Promise.all(stores.map((store) => mountSlowDisk(store, SLOW_DISK_MS))) : [];
    for (const disk of disks) stack.use(disk);
    const starting = stores.map(async (storeFolder, index) => {
      const config = serverConfig({
        users,
        certificateFile: join(folder, 'tls.crt'),
        keyFile: join(folder, 'tls.key'),
        storeFolder,
        storeBytes: STORE_BYTES,
        serverName: `bench-${index}`,
        monitoringPort: monitoringPorts[index] ?? 0,
      });
      const cluster = `cluster { name: bench, listen: "127.0.0.1:${routePorts[index]}", routes: [${routes}] }`;
      return startNats({ config: `${config}\n${cluster}\n` });
    });
    const servers = (await Promise.all(starting)).map((server) => stack.use(server));
    stack.move();
    const monitoring = monitoringPorts.map((port) => `http://127.0.0.1:${port}`);
    return new NatsCluster(folder, servers, disks, monitoring);
  }

  get urls(): string[] {
    return this.servers.map(({ port }) => `tls://127.0.0.1:${port}`);
  }

  get pids(): number[] {
    return this.servers.map(({ pid }) => pid);
  }

  get url(): string {
    return this.urls[0] ?? '';
  }

  seedFile(user: string): string {
    return join(this.#folder, `${user}.nk`);
  }

  /** Opens a connection as `operator` or `gateway`. Disposing the cluster closes it. */
  async connect(user: string): Promise<JetStreamConnection> {
    const { caFile, urls: servers } = this;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const options = { servers, name: 'bench', user, seedFile: this.seedFile(user), caFile, clock: systemClock, signal };
    const connection = await connectNats(options);
    this.#connections.push(connection);
    return connection;
  }

  async usage(): Promise<NatsUsage> {
    const all = await Promise.all(this.#monitoring.map((url) => usageOf(url)));
    const most = (of: keyof NatsUsage) => Math.max(...all.map((usage) => usage[of]));
    return {
      streams: most('streams'),
      consumers: most('consumers'),
      bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection[Symbol.asyncDispose]()));
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
    await Promise.all(this.disks.map((disk) => disk[Symbol.asyncDispose]()));
    await rm(this.#folder, { recursive: true, force: true });
    process.removeListener('exit', this.#atExit);
  }
}

/** The same of one server, from the address of its monitoring. */
export async function usageOf(url: string): Promise<NatsUsage> {
  const read = async (path: string) => (await (await fetch(`${url}/${path}`)).json()) as Record<string, number>;
  const [{ streams = 0, consumers = 0 }, { mem = 0 }] = await Promise.all([read('jsz'), read('varz')]);
  return { streams, consumers, bytes: mem };
}
