import { execFile } from 'node:child_process';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ApiClient } from '../api-client.ts';
import { waitUntilReady } from '../control-plane.ts';
import { controllerManagerFlags, etcdFlags } from '../flags.ts';
import { clientAs, writeKubeconfig } from '../kubeconfig.ts';
import { writePki } from '../pki.ts';
import { type ToolName, tool } from '../tools.ts';
import { makeCgroups } from './cgroups.ts';
import {
  API_PORT,
  CONTAINERD,
  cniConfig,
  containerdConfig,
  identitiesOf,
  kubeletConfig,
  kubeletFlags,
  NODE_NAME,
  nodeApiServerFlags,
  PAUSE_IMAGE,
  POLICY_PLUGIN,
  proxyFlags,
} from './config.ts';
import { DNS_IMAGE, DNS_OBJECTS } from './dns.ts';
import { archiveProgram, importImage } from './images.ts';
import { makeNamespaces, type Namespaces } from './namespaces.ts';
import { makeNetwork } from './network.ts';
import { writeState } from './state.ts';
import { pollAssertion } from '../../support/poll.ts';

const run = promisify(execFile);
const READY_TIMEOUT_MS = 120_000;
/** The folder of the CNI plugins on Debian. */
const CNI_PLUGINS = '/usr/lib/cni';
const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A node that is Ready, with a ready cluster DNS. */
export interface RunningNode {
  readonly space: Namespaces;
  /** `https://<address>:6443` */
  readonly url: string;
  /** The path of a cluster administrator's kubeconfig. */
  readonly kubeconfig: string;
}

/**
 * Starts a cluster of one node in the folder, which must be empty. `down(folder)` stops it; with `parentBound` its processes also end with
 * this process. When `up` throws, `down` removes the leftovers.
 */
export async function up(folder: string, { parentBound }: { parentBound: boolean }): Promise<RunningNode> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw new Error('a node needs Linux and root, because it creates namespaces, mounts and packet filters');
  }
  await run(script('../install-packages.sh'), [], { maxBuffer: 16 * 1024 * 1024 });
  const programs = await programPaths();
  await Promise.all(['pki', 'cni', 'cni-bin', 'images'].map((name) => mkdir(join(folder, name), { recursive: true })));
  const space = await makeNamespaces(folder, parentBound);
  const cgroup = basename(resolve(folder)).replace(/[^A-Za-z0-9-]/g, '-');
  const unique = `temper-${cgroup}-${space.pid}`;
  await writeState(folder, space.pid, unique);
  await makeCgroups(unique);
  const node = await makeNetwork(space);
  const url = `https://${node}:${API_PORT}`;
  const kubeconfig = await writeFiles(folder, url, node, unique);
  using admin = await clientAs(folder, url, 'admin');
  await Promise.all([startControl(space, folder, programs, node, admin), startRuntime(space, folder, programs)]);
  await startNode(space, folder, programs, node);
  for (const { path, body } of DNS_OBJECTS) await create(admin, path, body);
  await pollAssertion('the node and its DNS to be Ready', () => assertNodeReady(admin), {
    timeoutMs: READY_TIMEOUT_MS,
  });
  return { space, url, kubeconfig };
}

type Programs = Readonly<Record<ToolName, string>>;

async function programPaths(): Promise<Programs> {
  const names = [
    'etcd',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'kubelet',
    'kube-proxy',
  ] as const;
  const others = ['coredns', 'pause'] as const;
  const found: [string, string][] = [];
  for (const name of [...names, ...others]) found.push([name, await tool(name)]);
  return Object.fromEntries(found) as Programs;
}

async function writeFiles(folder: string, url: string, node: string, cgroup: string): Promise<string> {
  const pki = join(folder, 'pki');
  await Promise.all([
    writePki(pki, identitiesOf(node)),
    writeFile(join(folder, 'kubelet.json'), kubeletConfig(pki, cgroup)),
    writeFile(join(folder, 'containerd.toml'), containerdConfig(folder)),
    writeFile(join(folder, 'cni', '10-pods.conflist'), cniConfig()),
    writePlugins(join(folder, 'cni-bin')),
    ...['controller-manager', 'scheduler', 'kubelet', 'proxy', 'network-policy'].map((name) =>
      writeKubeconfig(folder, url, name),
    ),
  ]);
  return writeKubeconfig(folder, url, 'admin');
}

/** Links the CNI plugins of the distribution and writes the plugin that waits for network policies. */
async function writePlugins(folder: string): Promise<void> {
  const names = await readdir(CNI_PLUGINS);
  await Promise.all(names.map((name) => symlink(join(CNI_PLUGINS, name), join(folder, name))));
  // Each pod starts this program, with an empty environment.
  const cache = process.env['NODE_COMPILE_CACHE'] ?? '';
  const own = `#!/bin/sh\nNODE_COMPILE_CACHE='${cache}' exec '${process.execPath}' '${script('../network-policy/cni.ts')}'\n`;
  await writeFile(join(folder, POLICY_PLUGIN), own, { mode: 0o755 });
}

async function startControl(space: Namespaces, folder: string, programs: Programs, node: string, admin: ApiClient) {
  const pki = join(folder, 'pki');
  await space.start('etcd', programs.etcd, ...etcdFlags(join(folder, 'etcd'), { client: 2379, peer: 2380 }));
  await space.start('kube-apiserver', programs['kube-apiserver'], ...nodeApiServerFlags(pki, node));
  await waitUntilReady(admin, []);
  const controllers = controllerManagerFlags(pki, join(folder, 'controller-manager.kubeconfig'));
  await space.start('kube-controller-manager', programs['kube-controller-manager'], ...controllers);
  const scheduler = [`--kubeconfig=${join(folder, 'scheduler.kubeconfig')}`, '--leader-elect=false', '--secure-port=0'];
  await space.start('kube-scheduler', programs['kube-scheduler'], ...scheduler);
}

async function startRuntime(space: Namespaces, folder: string, programs: Programs): Promise<void> {
  await space.start('containerd', 'containerd', '-c', join(folder, 'containerd.toml'));
  const archives = [
    { path: programs.pause, image: PAUSE_IMAGE },
    { path: programs.coredns, image: DNS_IMAGE },
  ].map(({ path, image }) => ({ path, image, archive: join(folder, 'images', `${basename(path)}.tar`) }));
  for (const { path, image, archive } of archives) await archiveProgram(path, image, archive);
  // The kubelet exits when the socket does not exist.
  await pollAssertion('containerd to respond', () => space.run('ctr', '-a', CONTAINERD, 'version'));
  for (const { archive } of archives) await importImage(space, archive);
}

async function startNode(space: Namespaces, folder: string, programs: Programs, node: string): Promise<void> {
  const policy = [script('../network-policy/main.ts'), join(folder, 'network-policy.kubeconfig')];
  await space.start('network-policy', process.execPath, ...policy);
  await space.start('kubelet', programs.kubelet, ...kubeletFlags(folder, node));
  await space.start('kube-proxy', programs['kube-proxy'], ...proxyFlags(folder));
}

async function create(admin: ApiClient, path: string, body: object): Promise<void> {
  const answer = await admin.call('POST', path, { body });
  if (answer.status !== 201) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`);
}

async function assertNodeReady(admin: ApiClient): Promise<void> {
  const node = await admin.call('GET', `/api/v1/nodes/${NODE_NAME}`);
  const { conditions = [] } = (node.body['status'] ?? {}) as { conditions?: { type: string; status: string }[] };
  const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  if (!isReady) throw new Error(JSON.stringify(conditions));
  const dns = await admin.call('GET', '/apis/apps/v1/namespaces/kube-system/deployments/coredns');
  const { readyReplicas = 0 } = (dns.body['status'] ?? {}) as { readyReplicas?: number };
  if (readyReplicas === 0) throw new Error(`coredns: ${JSON.stringify(dns.body['status'])}`);
}
