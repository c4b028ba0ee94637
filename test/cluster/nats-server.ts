import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endServer, hasEnded, lastWords, type Server, startServer } from './process.ts';
import { tool } from './tools.ts';

/** A nats-server of its own on loopback. Disposing ends it and removes its folder. */
export interface NatsServer extends AsyncDisposable {
  /** `nats://127.0.0.1:<port>`, or `tls://…` where TLS is asked for. */
  readonly url: string;
  readonly port: number;
  /** Where JetStream keeps its files; it outlives `kill` and `restart`. Remove it between the two and all streams are lost. */
  readonly storeDir: string;
  /** Ends it by SIGKILL, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again with the same port, store and configuration; ends it first when it runs. */
  restart(): Promise<void>;
  /** Reads another configuration without ending connections that stay allowed. Returns once the server was told, not when it has done so. */
  reload(config: string): Promise<void>;
  /** What it has logged so far. */
  log(): Promise<string>;
}

export interface NatsOptions {
  /** In the server's own format: accounts, users, limits. Address, port, store and TLS are given beside it. */
  readonly config?: string;
  /** In the place of `config`: a file that somebody else keeps. */
  readonly configFile?: string;
  readonly jetstream?: true;
  /** Of 127.0.0.1, chosen by the server when absent. */
  readonly port?: number;
  /** PEM. With `ca` clients must show a certificate that it signed. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
}

/** How long a slow machine may take until the server answers; a quick one takes a tenth of a second. */
const PATIENCE_MS = 60_000;

/** Throws with the end of the server's log when it does not start; nothing is left behind then. */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const path = await tool('nats-server');
  const folder = await mkdtemp(join(tmpdir(), 'temper-nats-'));
  const storeDir = join(folder, 'store');
  let server: Server | undefined;
  const kill = () => void server?.child.kill('SIGKILL');
  // A test that ends early must not leave a server running.
  process.once('exit', kill);
  const end = async () => {
    if (server !== undefined) await endServer(server);
  };
  const dispose = async () => {
    process.removeListener('exit', kill);
    await end();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const flags = await writeFiles(folder, storeDir, options);
    // The server chooses its port, so nobody can take it first, and says which in a file.
    server = await startServer(folder, {
      name: 'nats-server',
      path,
      flags: [...flags, '-p', String(options.port ?? -1)],
    });
    const port = await portOf(server, folder);
    await answers(server, port);
    const restart = async () => {
      await end();
      server = await startServer(folder, { name: 'nats-server', path, flags: [...flags, '-p', String(port)] });
      await answers(server, port);
    };
    const reload = async (config: string) => {
      await writeFile(join(folder, 'nats.conf'), config);
      server?.child.kill('SIGHUP');
    };
    const url = `${options.tls === undefined ? 'nats' : 'tls'}://127.0.0.1:${port}`;
    const log = () => readFile(join(folder, 'nats-server.log'), 'utf8');
    return { url, port, storeDir, kill: end, restart, reload, log, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function writeFiles(folder: string, storeDir: string, options: NatsOptions) {
  const { config, configFile, jetstream, tls } = options;
  const file = async (name: string, text: string) => {
    await writeFile(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const flags = [
    '-a',
    '127.0.0.1',
    '--ports_file_dir',
    folder,
    '-c',
    configFile ?? (await file('nats.conf', config ?? '')),
  ];
  if (jetstream) flags.push('-js', '-sd', storeDir);
  if (tls === undefined) return flags;
  flags.push('--tls', '--tlscert', await file('tls.crt', tls.cert), '--tlskey', await file('tls.key', tls.key));
  if (tls.ca !== undefined) flags.push('--tlsverify', '--tlscacert', await file('ca.crt', tls.ca));
  return flags;
}

async function portOf(server: Server, folder: string): Promise<number> {
  const file = join(folder, `nats-server_${server.child.pid}.ports`);
  return until(server, async () => {
    const { nats } = JSON.parse(await readFile(file, 'utf8')) as { nats: [string] };
    return Number(new URL(nats[0]).port);
  });
}

/** JetStream has recovered its streams by the time a connection is accepted. */
async function answers(server: Server, port: number): Promise<void> {
  await until(server, async () => {
    const socket = connect(port, '127.0.0.1');
    try {
      await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject).once('close', reject));
    } finally {
      socket.destroy();
    }
  });
}

/** Tries until it does not throw. */
async function until<T>(server: Server, attempt: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (hasEnded(server)) throw new Error(`nats-server ended: ${await lastWords(server)}`, { cause: error });
      if (performance.now() > deadline) {
        throw new Error(`nats-server did not answer within ${PATIENCE_MS / 1000} s: ${await lastWords(server)}`, {
          cause: error,
        });
      }
    }
    await sleep(20);
  }
}
