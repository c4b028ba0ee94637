import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ApiClient, apiClient } from './api-client.ts';
import { writePki } from './pki.ts';

/** An API server of its own on loopback, with etcd behind it. Disposing ends its processes and removes its folder. */
export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** The path of a kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** Speaks as a cluster administrator. */
  readonly admin: ApiClient;
}

interface Options {
  /** Runs the controllers too: garbage collection, namespaces, service accounts. */
  readonly controllerManager?: boolean;
}

interface Component {
  readonly name: string;
  readonly child: ChildProcess;
  readonly log: string;
}

/** How long a slow machine may take until the API server is ready; a quick one takes seconds. */
const PATIENCE_MS = 120_000;

/** Starts a control plane. Throws with the end of the log of the component that failed; nothing is left behind then. */
export async function startControlPlane({ controllerManager = false }: Options = {}): Promise<ControlPlane> {
  const tools = await buildTools();
  const folder = await mkdtemp(join(tmpdir(), 'temper-control-plane-'));
  const components: Component[] = [];
  const kill = () => {
    for (const { child } of components) child.kill('SIGKILL');
  };
  // A test that ends early must not leave servers running.
  process.once('exit', kill);
  const stop = async () => {
    process.removeListener('exit', kill);
    // SIGKILL: a graceful stop of the API server waits for watches that nobody closes.
    await Promise.all(components.map(({ child }) => ended(child)));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    return await startIn(folder, tools, components, controllerManager, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startIn(
  folder: string,
  tools: string,
  components: Component[],
  controllerManager: boolean,
  stop: () => Promise<void>,
): Promise<ControlPlane> {
  const pki = join(folder, 'pki');
  await mkdir(pki);
  const [[etcd, peer, secure]] = await Promise.all([freePorts(), writePki(pki)]);
  const url = `https://127.0.0.1:${secure}`;
  const start = async (name: string, flags: readonly string[]) => {
    components.push(await startComponent(folder, join(tools, name), name, flags));
  };
  await start('etcd', etcdFlags(folder, etcd, peer));
  await start('kube-apiserver', apiServerFlags(pki, etcd, secure));
  const kubeconfig = await writeKubeconfig(folder, url, 'admin');
  const pem = (file: string) => readFile(join(pki, file), 'utf8');
  const [ca, cert, key] = await Promise.all([pem('ca.crt'), pem('admin.crt'), pem('admin.key')]);
  const admin = apiClient(url, { ca, cert, key });
  await ready(admin, components);
  if (controllerManager) {
    const own = await writeKubeconfig(folder, url, 'controller-manager');
    await start('kube-controller-manager', controllerManagerFlags(pki, own));
  }
  const dispose = async () => {
    admin[Symbol.dispose]();
    await stop();
  };
  return { url, kubeconfig, admin, [Symbol.asyncDispose]: dispose };
}

async function buildTools(): Promise<string> {
  const script = fileURLToPath(new URL('build-tools.sh', import.meta.url));
  const { stdout } = await promisify(execFile)(script, { maxBuffer: 16 * 1024 * 1024 });
  return stdout.trim();
}

function etcdFlags(folder: string, client: number, peer: number): string[] {
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    '--log-level=warn',
  ];
}

function apiServerFlags(pki: string, etcd: number, port: number): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--secure-port=${port}`,
    `--tls-cert-file=${join(pki, 'apiserver.crt')}`,
    `--tls-private-key-file=${join(pki, 'apiserver.key')}`,
    `--client-ca-file=${join(pki, 'ca.crt')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${join(pki, 'sa.pub')}`,
    `--service-account-signing-key-file=${join(pki, 'sa.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=Node,RBAC',
    '--profiling=false',
  ];
}

function controllerManagerFlags(pki: string, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${join(pki, 'sa.key')}`,
    `--root-ca-file=${join(pki, 'ca.crt')}`,
    '--leader-elect=false',
  ];
}

async function startComponent(folder: string, program: string, name: string, flags: readonly string[]) {
  const log = join(folder, `${name}.log`);
  const file = await open(log, 'w');
  try {
    // Nothing of the tester's environment reaches the servers: etcd reads settings from it.
    const child = spawn(program, flags, { cwd: folder, stdio: ['ignore', file.fd, file.fd], env: {} });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    return { name, child, log };
  } finally {
    await file.close();
  }
}

async function ready(admin: ApiClient, components: readonly Component[]): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  let last = '';
  while (performance.now() < deadline) {
    const dead = components.find(({ child }) => child.exitCode !== null || child.signalCode !== null);
    if (dead !== undefined) throw new Error(`${dead.name} ended: ${await endOf(dead.log)}`);
    try {
      const { status, body } = await admin.call('GET', '/readyz');
      if (status === 200) return;
      last = String(body['text'] ?? body['message']);
    } catch (error) {
      last = String(error); // not listening yet
    }
    await sleep(50);
  }
  throw new Error(`the API server was not ready within ${PATIENCE_MS / 1000} s: ${last}`);
}

async function endOf(log: string): Promise<string> {
  return (await readFile(log, 'utf8')).slice(-2000);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exit;
}

/** Held all at once, so that they differ. */
async function freePorts(): Promise<[number, number, number]> {
  const servers = [createServer(), createServer(), createServer()] as const;
  const ports = servers.map(async (server) => {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return (server.address() as { port: number }).port;
  });
  const found = (await Promise.all(ports)) as [number, number, number];
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return found;
}

async function writeKubeconfig(folder: string, url: string, name: string): Promise<string> {
  const file = join(folder, `${name}.kubeconfig`);
  const pki = join(folder, 'pki');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': join(pki, 'ca.crt') } }],
    users: [{ name, user: { 'client-certificate': join(pki, `${name}.crt`), 'client-key': join(pki, `${name}.key`) } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: name } }],
    'current-context': 'test',
  };
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
