import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hasExited, logTail, type Server } from './process.ts';
import { openServerFolder } from './server-folder.ts';
import { tool } from './tools.ts';
import { pollAssertion, StopPolling } from '../support/poll.ts';

/** A separate nats-server on loopback. Disposing kills it and removes its folder. */
export interface NatsServer extends AsyncDisposable {
  /** `nats://127.0.0.1:<port>`, or `tls://…` with the option `tls`. */
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now. */
  readonly pid: number;
  /** The JetStream store. It survives `kill` and `restart`; removing it in between loses all streams. */
  readonly storeDir: string;
  /** Kills the server with SIGKILL, like a crash. */
  kill(): Promise<void>;
  /** Restarts the server with the same port, store and configuration. Kills it first if it is running. */
  restart(): Promise<void>;
  /** Ends the server as its pod ends: lame duck mode by the command of the chart, then SIGTERM. Resolves when it has exited. */
  shutDown(): Promise<void>;
  /** Stops the process without ending it, like a server whose disk or network hangs: its connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** Replaces the configuration and sends SIGHUP, which keeps connections that are still allowed. Does not wait for the reload. */
  reload(config: string): Promise<void>;
  /** The log so far. */
  log(): Promise<string>;
}

export interface NatsOptions {
  /** Configuration text: accounts, users, limits. Address, port, store and TLS are set by flags. */
  readonly config?: string;
  /** The path of a configuration file that the caller maintains, instead of `config`. */
  readonly configFile?: string;
  readonly jetstream?: true;
  /** Added to the environment of the server. */
  readonly env?: Readonly<Record<string, string>>;
  /** The port on 127.0.0.1; by default the server chooses a free one. */
  readonly port?: number;
  /** PEM. With `ca`, clients must present a certificate that this CA signed. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
}

/** A fast machine needs 0.1 s; the bound is for slow ones. */
const READY_TIMEOUT_MS = 60_000;

/** Starts a nats-server. On failure it throws the tail of the server's log and leaves no process and no file. */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const path = await tool('nats-server');
  const opened = await openServerFolder('nats');
  const { path: folder, kill } = opened;
  const child = () => opened.server()?.child;
  const storeDir = join(folder, 'store');
  const dispose = () => opened[Symbol.asyncDispose]();
  try {
    const flags = await writeFiles(folder, storeDir, options);
    const { env = {} } = options;
    // The server chooses its port, so that no other process can take it first, and writes it to a file.
    const startOn = (wanted: number) =>
      opened.start({ name: 'nats-server', path, env, flags: [...flags, '-p', String(wanted)] });
    const server = await startOn(options.port ?? -1);
    const port = await portOf(server, folder);
    await waitUntilListening(server, port);
    const restart = async () => waitUntilListening(await startOn(port), port);
    const reload = async (config: string) => {
      await writeFile(join(folder, 'nats.conf'), config);
      child()?.kill('SIGHUP');
    };
    const shutDown = async () => {
      const running = child();
      if (running?.exitCode !== null) return;
      const exited = new Promise((resolve) => running.once('exit', resolve));
      await promisify(execFile)(path, ['--signal', `ldm=${running.pid}`]);
      // The kubelet needs longer to follow with SIGTERM than the server to handle the first signal.
      await pollAssertion('lame duck mode', async () => {
        if (!(await readFile(join(folder, 'nats-server.log'), 'utf8')).includes('Entering lame duck mode'))
          throw new Error();
      });
      running.kill('SIGTERM');
      await exited;
    };
    const pause = () => void child()?.kill('SIGSTOP');
    const resume = () => void child()?.kill('SIGCONT');
    const url = `${options.tls === undefined ? 'nats' : 'tls'}://127.0.0.1:${port}`;
    const log = () => readFile(join(folder, 'nats-server.log'), 'utf8');
    return {
      url,
      port,
      get pid() {
        return child()?.pid ?? 0;
      },
      storeDir,
      kill,
      shutDown,
      restart,
      pause,
      resume,
      reload,
      log,
      [Symbol.asyncDispose]: dispose,
    };
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
  return retry('the port of nats-server', server, async () => {
    const { nats } = JSON.parse(await readFile(file, 'utf8')) as { nats: [string] };
    return Number(new URL(nats[0]).port);
  });
}

/** The server accepts connections only after JetStream has recovered its streams. */
async function waitUntilListening(server: Server, port: number): Promise<void> {
  await retry('a connection to nats-server', server, async () => {
    const socket = connect(port, '127.0.0.1');
    try {
      await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject).once('close', reject));
    } finally {
      socket.destroy();
    }
  });
}

/** Repeats the attempt until it succeeds. Fails at once, with the tail of the log, when the server has exited. */
function retry<T>(what: string, server: Server, attempt: () => Promise<T>): Promise<T> {
  const check = async () => {
    try {
      return await attempt();
    } catch (cause) {
      const log = await logTail(server);
      if (hasExited(server)) throw new StopPolling(`nats-server ended: ${log}`, { cause });
      throw new Error(`${String(cause)}; log: ${log}`, { cause });
    }
  };
  return pollAssertion(what, check, { timeoutMs: READY_TIMEOUT_MS, intervalMs: 20 });
}
