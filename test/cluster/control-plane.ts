import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from './api-client.ts';
import { type AuditEntry, auditFlags, readAudit } from './audit.ts';
import { apiServerFlags, controllerManagerFlags, nodeGraceFlags, etcdFlags, featureGateFlags } from './flags.ts';
import { clientAs, writeKubeconfig } from './kubeconfig.ts';
import { API_SERVER_NAMES, type Identity, writePki } from './pki.ts';
import { endServer, freePorts, hasEnded, isFree, lastWords, type Server, startServer } from './process.ts';
import { type ToolName, tool } from './tools.ts';

/** An API server of its own on loopback, with etcd behind it. Disposing ends its processes and removes its folder. */
export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** The certificate of its authority, PEM. */
  readonly ca: string;
  /** The path of a kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** Speaks as a cluster administrator. */
  readonly admin: ApiClient;
  /** The calls so far that named a resource, this client's own too. Only with `audit`. */
  audit(): Promise<AuditEntry[]>;
  /** `http://127.0.0.1:<port>` of etcd, for what only etcd can be told, e.g. to forget its history. */
  readonly etcd: string;
  /** The process of a component: `etcd`, `kube-apiserver` or `kube-controller-manager`. Throws when it was not started. */
  pidOf(component: ToolName): number;
  /** Kills the API server and starts it again over the same data; resolves when it is ready. */
  restartApiServer(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** Runs the controllers too: garbage collection, namespaces, service accounts. */
  readonly controllerManager?: boolean;
  /** Seconds after which its controllers call a node silent; their own default when not given. */
  readonly nodeGrace?: number;
  /** Keeps a record of every call. */
  readonly audit?: boolean;
  /** Of the API server and the controllers. */
  readonly featureGates?: Readonly<Record<string, boolean>>;
}

type Ports = Record<'etcd' | 'peer' | 'secure', number>;

const IDENTITIES: readonly Identity[] = [
  { name: 'apiserver', subject: '/CN=kube-apiserver', alternativeNames: API_SERVER_NAMES },
  { name: 'admin', subject: '/O=system:masters/CN=admin' },
  { name: 'controller-manager', subject: '/CN=system:kube-controller-manager' },
];
/** How long a slow machine may take until the API server is ready; a quick one takes seconds. */
const PATIENCE_MS = 120_000;
const ATTEMPTS = 3;

const choosePorts = (): Promise<Ports> => freePorts('etcd', 'peer', 'secure');

/** Starts a control plane. Throws with the end of the log of the component that failed; nothing is left behind then. */
export async function startControlPlane(
  options: ControlPlaneOptions = {},
  choose: () => Promise<Ports> = choosePorts,
): Promise<ControlPlane> {
  for (let attempt = 1; ; attempt++) {
    const ports = await choose();
    try {
      return await startOn(ports, options);
    } catch (error) {
      // Ours have ended: whoever listens there now took the port between the choice and the start.
      const free = await Promise.all(Object.values(ports).map(isFree));
      if (attempt === ATTEMPTS || !free.includes(false)) throw error;
    }
  }
}

async function startOn(ports: Ports, options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-control-plane-'));
  const servers: Server[] = [];
  const kill = () => {
    for (const { child } of servers) child.kill('SIGKILL');
  };
  // A test that ends early must not leave servers running.
  process.once('exit', kill);
  const stop = async () => {
    process.removeListener('exit', kill);
    // SIGKILL: a graceful stop of the API server waits for watches that nobody closes.
    await Promise.all(servers.map(endServer));
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
  { controllerManager = false, nodeGrace, audit = false, featureGates = {} }: ControlPlaneOptions,
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
  const gates = featureGateFlags(featureGates);
  await start('etcd', etcdFlags(join(folder, 'etcd'), { client: ports.etcd, peer: ports.peer }));
  const flags = [
    ...apiServerFlags(pki, { etcd: ports.etcd, address: '127.0.0.1', port: ports.secure }),
    '--endpoint-reconciler-type=none',
    ...gates,
    ...(audit ? await auditFlags(folder) : []),
  ];
  await start('kube-apiserver', flags);
  const kubeconfig = await writeKubeconfig(folder, url, 'admin');
  const admin = await clientAs(folder, url, 'admin');
  try {
    await ready(admin, servers);
  } catch (error) {
    admin[Symbol.dispose]();
    throw error;
  }
  if (controllerManager) {
    const own = await writeKubeconfig(folder, url, 'controller-manager');
    const patience = nodeGrace === undefined ? [] : nodeGraceFlags(nodeGrace);
    await start('kube-controller-manager', [...controllerManagerFlags(pki, own), ...patience, ...gates]);
  }
  const restartApiServer = async () => {
    const at = servers.findIndex(({ name }) => name === 'kube-apiserver');
    await Promise.all(servers.splice(at, 1).map(endServer));
    await start('kube-apiserver', flags);
    await ready(admin, servers);
  };
  return {
    url,
    ca: await readFile(join(pki, 'ca.crt'), 'utf8'),
    kubeconfig,
    admin,
    audit: () => readAudit(folder),
    etcd: `http://127.0.0.1:${ports.etcd}`,
    pidOf: (component) => {
      const pid = servers.find(({ name }) => name === component)?.child.pid;
      if (pid === undefined) throw new Error(`${component} does not run`);
      return pid;
    },
    restartApiServer,
    [Symbol.asyncDispose]: async () => {
      admin[Symbol.dispose]();
      await stop();
    },
  };
}

/** Waits until the API server is ready. Throws when one of the servers ends before. */
export async function ready(admin: ApiClient, servers: readonly Server[]): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  // A stranger that took the port may accept a call and never answer: what has ended is not waited for.
  const end = Promise.race(servers.map(({ child }) => new Promise((resolve) => child.once('exit', resolve))));
  let last = '';
  while (performance.now() < deadline) {
    const dead = servers.find(hasEnded);
    if (dead !== undefined) throw new Error(`${dead.name} ended: ${await lastWords(dead)}`);
    const answer = attempt(admin);
    await Promise.race([answer, end]);
    if (servers.some(hasEnded)) continue;
    last = await answer;
    if (last === '') return;
    await sleep(50);
  }
  throw new Error(`the API server was not ready within ${PATIENCE_MS / 1000} s: ${last}`);
}

/** Why it is not ready; empty when it is. */
async function attempt(admin: ApiClient): Promise<string> {
  try {
    const { status, body } = await admin.call('GET', '/readyz');
    return status === 200 ? '' : String(body['text'] ?? body['message']);
  } catch (error) {
    return String(error); // not listening yet
  }
}
