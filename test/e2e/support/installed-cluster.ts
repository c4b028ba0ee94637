import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { helm } from '../../cluster/helm.ts';
import { CONTAINERD } from '../../cluster/node/config.ts';
import { archiveProgram } from '../../cluster/node/images.ts';
import { type NodeCluster, startNode } from '../../cluster/node.ts';
import { tool } from '../../cluster/tools.ts';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const RELEASE_NAMESPACE = 'temper-system';
const CHART = join(ROOT, 'charts/temper');
const VALUES = join(ROOT, 'test/e2e/values.yaml');
const TAG = 'e2e';
const STORAGE_CLASS = 'node-folder';
const MEBIBYTE = 1_048_576;
/** The timeout of `kubectl temper` commands. */
const COMMAND_TIMEOUT_MS = 300_000;

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** A cluster of one node with the chart, with images built from the working tree. */
export interface InstalledCluster extends AsyncDisposable {
  readonly node: NodeCluster;
  /** Runs kubectl as an administrator and returns its stdout. On failure the error's message contains its stderr. */
  kubectl(...args: string[]): Promise<string>;
  /** Applies the objects server-side. */
  apply(...objects: object[]): Promise<void>;
  /** Runs `kubectl temper …` as an administrator. Does not throw for an exit code. */
  temper(...args: string[]): Promise<CommandResult>;
  /** Like `temper`, with additional environment variables. */
  temperWith(environment: Readonly<Record<string, string>>, ...args: string[]): Promise<CommandResult>;
  /** Runs helm with the kubeconfig of the cluster in the namespace of the release. */
  helm(...args: string[]): Promise<string>;
  /** Installs the chart and waits until all workloads are ready. `values` are flags that follow those of values.yaml. */
  install(...values: string[]): Promise<void>;
  /** Runs `helm upgrade` with values.yaml and `more` flags, and waits until all workloads are ready. */
  upgrade(...more: string[]): Promise<string>;
  /** Waits for a condition, as `kubectl wait` does. */
  waitFor(object: string, condition: string, namespace: string, seconds?: number): Promise<void>;
}

/** Starts a cluster and installs the chart; see `startClusterWithImages` and `install`. */
export async function startInstalledCluster(...values: string[]): Promise<InstalledCluster> {
  const cluster = await startClusterWithImages();
  try {
    await cluster.install(...values);
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

/** Starts a cluster with images and a volume, but without the chart. Needs root on Linux, and minutes when nothing is built yet. */
export async function startClusterWithImages(): Promise<InstalledCluster> {
  const node = await startNode();
  try {
    await provideImages(node);
    await provideVolume(node);
    return installedClusterOn(node);
  } catch (error) {
    await node[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Throws the node away with everything that it stores (etcd, volumes, pods), and starts an empty one with the same images, without the
 * chart.
 */
export async function replaceNode({ node }: InstalledCluster): Promise<InstalledCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-images-'));
  try {
    const archive = join(folder, 'images.tar');
    await exportImages(node, archive);
    await node[Symbol.asyncDispose]();
    const next = await startNode();
    try {
      await next.importImage(archive);
      await provideVolume(next);
      return installedClusterOn(next);
    } catch (error) {
      await next[Symbol.asyncDispose]();
      throw error;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function exportImages(node: NodeCluster, archive: string): Promise<void> {
  const names = ['temper', 'temper-sandbox', 'nats'].map((name) => `localhost/${name}:${TAG}`);
  await node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'images', 'export', archive, ...names);
}

const WAIT_FLAGS = ['--wait', '--timeout', '4m'];

function installedClusterOn(node: NodeCluster): InstalledCluster {
  const { kubeconfig } = node;
  const kubectl = (...args: string[]) => node.kubectl(...args);
  const folder = dirname(kubeconfig);
  const releaseHelm = (...args: string[]) =>
    helm(...args, '--namespace', RELEASE_NAMESPACE, '--kubeconfig', kubeconfig);
  return {
    node,
    kubectl,
    async apply(...objects) {
      const file = join(folder, `objects-${process.hrtime.bigint()}.json`);
      await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
      await kubectl('apply', '--server-side', '-f', file);
      await rm(file);
    },
    temper: (...args) => temper(kubeconfig, args),
    temperWith: (environment, ...args) => temper(kubeconfig, args, environment),
    helm: releaseHelm,
    async install(...values) {
      await releaseHelm('install', 'temper', CHART, '--create-namespace', '--values', VALUES, ...values, ...WAIT_FLAGS);
    },
    upgrade: (...more) => releaseHelm('upgrade', 'temper', CHART, '--values', VALUES, ...more, ...WAIT_FLAGS),
    async waitFor(object, condition, namespace, seconds = 60) {
      await kubectl('wait', object, `--for=condition=${condition}`, '-n', namespace, `--timeout=${seconds}s`);
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  };
}

async function temper(
  kubeconfig: string,
  args: string[],
  more: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const program = join(ROOT, 'bin/kubectl-temper');
  const env = { PATH: process.env['PATH'] ?? '', HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig, ...more };
  const options = { env, maxBuffer: 64 * MEBIBYTE, timeout: COMMAND_TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === 'number') resolve({ code, stdout, stderr });
      else reject(new Error(`kubectl temper ${args.join(' ')} did not end: ${stdout}${stderr}`, { cause: error }));
    });
  });
}

type Node = Pick<NodeCluster, 'admin' | 'kubeconfig' | 'buildRelease' | 'importImage'>;

/** Builds the project's images from the working tree and imports them and nats-server into the node. */
async function provideImages(node: Node): Promise<void> {
  await node.buildRelease(TAG);
  await provideProgram(node, await tool('nats-server'), `localhost/nats:${TAG}`);
}

/** Imports a program of this machine, given by path or name, into the node as an image. */
export async function provideProgram(node: Node, program: string, image: string): Promise<void> {
  const archive = join(dirname(node.kubeconfig), 'program.tar');
  await archiveProgram(program, image, archive);
  await node.importImage(archive);
  await rm(archive);
}

/** The folder with the store of nats-server. */
export function natsVolume({ kubeconfig }: Pick<Node, 'kubeconfig'>): string {
  return join(dirname(kubeconfig), 'volumes/nats');
}

/** Creates a StorageClass and a PersistentVolume for nats-server, which a real cluster provides. */
export async function provideVolume(node: Node): Promise<void> {
  const path = natsVolume(node);
  await mkdir(path, { recursive: true });
  await chmod(path, 0o777);
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'Exists' }];
  await create(node, '/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name: STORAGE_CLASS },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  await create(node, '/api/v1/persistentvolumes', {
    metadata: { name: 'nats' },
    spec: {
      capacity: { storage: '8Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: STORAGE_CLASS,
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  });
}

async function create({ admin }: Node, path: string, object: object): Promise<void> {
  const { status, body } = await admin.call('POST', path, { body: object });
  if (status !== 201) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
}
