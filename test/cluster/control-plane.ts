import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from './api-client.ts';
import { type AuditEntry, auditFlags, readAudit } from './audit.ts';
import { apiServerFlags, controllerManagerFlags, nodeMonitorFlags, etcdFlags, featureGateFlags } from './flags.ts';
import { clientAs, writeKubeconfig } from './kubeconfig.ts';
import { API_SERVER_NAMES, type Identity, writePki } from './pki.ts';
import { killServer, freePorts, hasExited, isPortFree, logTail, type Server, startServer } from './process.ts';
import { type ToolName, tool } from './tools.ts';

/** A separate API server on loopback, with its own etcd. Disposing kills its processes and removes its folder. */
export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** The certificate of its CA, PEM. */
  readonly ca: string;
  /** The path of a kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** The path of the key, PEM, that signs the tokens of ServiceAccounts. */
  readonly serviceAccountKey: string;
  /** A client with the rights of a cluster administrator. */
  readonly admin: ApiClient;
  /** All resource requests so far, those of `admin` included. Needs the option `audit`. */
  audit(): Promise<AuditEntry[]>;
  /** `http://127.0.0.1:<port>` of etcd, for operations that only etcd offers, e.g. compaction. */
  readonly etcd: string;
  /** The process id of `etcd`, `kube-apiserver` or `kube-controller-manager`. Throws when the component was not started. */
  pidOf(component: ToolName): number;
  /** Kills the API server and restarts it over the same data; resolves when it is ready. */
  restartApiServer(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** Runs kube-controller-manager: garbage collection, namespaces, service accounts. */
  readonly controllerManager?: boolean;
  /** Seconds without a report after which the node controller marks a node as not ready (`--node-monitor-grace-period`). */
  readonly nodeGrace?: number;
  /** Records every request, see `ControlPlane.audit`. */
  readonly audit?: boolean;
  /**
   * Runs before kube-controller-manager starts. Install custom resources here: its garbage collector looks for new types every 30 seconds, and
   * until then deletes nothing that their objects own.
   */
  readonly prepare?: (admin: ApiClient) => Promise<void>;
  /** Feature gates of the API server and the controller manager. */
  readonly featureGates?: Readonly<Record<string, boolean>>;
}

type Ports = Record<'etcd' | 'peer' | 'secure', number>;

const IDENTITIES: readonly Identity[] = [
  { name: 'apiserver', subject: '/CN=kube-apiserver', alternativeNames: API_SERVER_NAMES },
  { name: 'admin', subject: '/O=system:masters/CN=admin' },
  { name: 'controller-manager', subject: '/CN=system:kube-controller-manager' },
];
/** A fast machine needs seconds; the bound is for slow ones. */
const READY_TIMEOUT_MS = 120_000;
const MAX_ATTEMPTS = 3;

const allocatePorts = (): Promise<Ports> => freePorts('etcd', 'peer', 'secure');

/** Starts a control plane. On failure it throws the tail of the failed component's log and leaves no process and no file. */
export async function startControlPlane(
  options: ControlPlaneOptions = {},
  allocate: () => Promise<Ports> = allocatePorts,
): Promise<ControlPlane> {
  for (let attempt = 1; ; attempt++) {
    const ports = await allocate();
    try {
      return await startOn(ports, options);
    } catch (error) {
      // The own servers have ended: a port in use now was taken by another process after allocation.
      const free = await Promise.all(Object.values(ports).map(isPortFree));
      if (attempt === MAX_ATTEMPTS || !free.includes(false)) throw error;
    }
  }
}

async function startOn(ports: Ports, options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-control-plane-'));
  const servers: Server[] = [];
  const kill = () => {
    for (const { child } of servers) child.kill('SIGKILL');
  };
  // Kills the servers when the test's process ends early.
  process.once('exit', kill);
  const stop = async () => {
    process.removeListener('exit', kill);
    // SIGKILL: a graceful stop of the API server waits for open watches.
    await Promise.all(servers.map(killServer));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    return await startIn(folder, ports, options, servers, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startIn(
  folder: string,
  ports: Ports,
  { controllerManager = false, nodeGrace, audit = false, prepare, featureGates = {} }: ControlPlaneOptions,
  servers: Server[],
  stop: () => Promise<void>,
): Promise<ControlPlane> {
  const pki = join(folder, 'pki');
  await mkdir(pki);
  await writePki(pki, IDENTITIES);
  const url = `https://127.0.0.1:${ports.secure}`;
  const start = async (name: ToolName, flags: readonly string[]) => {
    servers.push(await startServer(folder, { name, path: await tool(name), flags }));
  };
  const gateFlags = featureGateFlags(featureGates);
  await start('etcd', etcdFlags(join(folder, 'etcd'), { client: ports.etcd, peer: ports.peer }));
  const flags = [
    ...apiServerFlags(pki, { etcd: ports.etcd, address: '127.0.0.1', port: ports.secure }),
    '--endpoint-reconciler-type=none',
    ...gateFlags,
    ...(audit ? await auditFlags(folder) : []),
  ];
  await start('kube-apiserver', flags);
  const kubeconfig = await writeKubeconfig(folder, url, 'admin');
  const admin = await clientAs(folder, url, 'admin');
  try {
    await waitUntilReady(admin, servers);
    await prepare?.(admin);
  } catch (error) {
    admin[Symbol.dispose]();
    throw error;
  }
  if (controllerManager) {
    const kubeconfigFile = await writeKubeconfig(folder, url, 'controller-manager');
    const graceFlags = nodeGrace === undefined ? [] : nodeMonitorFlags(nodeGrace);
    await start('kube-controller-manager', [
      ...controllerManagerFlags(pki, kubeconfigFile),
      ...graceFlags,
      ...gateFlags,
    ]);
  }
  const restartApiServer = async () => {
    const index = servers.findIndex(({ name }) => name === 'kube-apiserver');
    await Promise.all(servers.splice(index, 1).map(killServer));
    await start('kube-apiserver', flags);
    await waitUntilReady(admin, servers);
  };
  return {
    url,
    ca: await readFile(join(pki, 'ca.crt'), 'utf8'),
    kubeconfig,
    serviceAccountKey: join(pki, 'sa.key'),
    admin,
    audit: () => readAudit(folder),
    etcd: `http://127.0.0.1:${ports.etcd}`,
    pidOf: (component) => {
      const pid = servers.find(({ name }) => name === component)?.child.pid;
      if (pid === undefined) throw new Error(`${component} is not running`);
      return pid;
    },
    restartApiServer,
    [Symbol.asyncDispose]: async () => {
      admin[Symbol.dispose]();
      await stop();
    },
  };
}

/** Waits until the API server is ready. Throws when one of the servers ends first. */
export async function waitUntilReady(admin: ApiClient, servers: readonly Server[]): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  // Another process that took the port may accept a request and never respond: stop waiting when a server has ended.
  const end = Promise.race(servers.map(({ child }) => new Promise((resolve) => child.once('exit', resolve))));
  let last = '';
  while (performance.now() < deadline) {
    const exited = servers.find(hasExited);
    if (exited !== undefined) throw new Error(`${exited.name} ended: ${await logTail(exited)}`);
    const answer = notReadyReason(admin);
    await Promise.race([answer, end]);
    if (servers.some(hasExited)) continue;
    last = await answer;
    if (last === '') return;
    await sleep(50);
  }
  throw new Error(`the API server was not ready within ${READY_TIMEOUT_MS / 1000} s: ${last}`);
}

/** The reason why the API server is not ready; empty when it is ready. */
async function notReadyReason(admin: ApiClient): Promise<string> {
  try {
    const { status, body } = await admin.call('GET', '/readyz');
    return status === 200 ? '' : String(body['text'] ?? body['message']);
  } catch (error) {
    return String(error); // not listening yet
  }
}
