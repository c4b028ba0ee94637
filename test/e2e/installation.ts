import { execFile } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { helm } from '../cluster/helm.ts';
import { archiveProgram } from '../cluster/node/images.ts';
import { type NodeCluster, startNode } from '../cluster/node.ts';
import { tool } from '../cluster/tools.ts';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const RELEASE_NAMESPACE = 'temper-system';
const CHART = join(ROOT, 'charts/temper');
const VALUES = join(ROOT, 'test/e2e/values.yaml');
const TAG = 'e2e';
const STORAGE_CLASS = 'node-folder';
const MEBIBYTE = 1_048_576;
/** The longest a command of these tests may take. */
const PATIENCE_MS = 300_000;

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** A cluster of one node with the chart installed on it, from images of the sources as they are. */
export interface Installation extends AsyncDisposable {
  readonly node: NodeCluster;
  /** Runs kubectl as an administrator and returns what it wrote. Throws with its error output. */
  kubectl(...args: string[]): Promise<string>;
  /** Applies one object, or several. */
  apply(...objects: object[]): Promise<void>;
  /** `kubectl temper …` as an administrator; never throws for an exit code. */
  temper(...args: string[]): Promise<Ended>;
  /** The same with more in its environment. */
  temperWith(environment: Readonly<Record<string, string>>, ...args: string[]): Promise<Ended>;
  /** `helm …` with the kubeconfig of the cluster and the namespace of the release. */
  helm(...args: string[]): Promise<string>;
  /** Installs the chart and waits until everything is ready. `values` go to helm after those of values.yaml. */
  install(...values: string[]): Promise<void>;
  /** `helm upgrade` with the values of these tests and more; waits until everything is ready. */
  upgrade(...more: string[]): Promise<string>;
  /** Waits for a condition, as `kubectl wait` does. */
  waitFor(object: string, condition: string, namespace: string, seconds?: number): Promise<void>;
}

/** A cluster with the chart installed on it; see `startCluster` and `install`. */
export async function startInstallation(...values: string[]): Promise<Installation> {
  const installation = await startCluster();
  try {
    await installation.install(...values);
    return installation;
  } catch (error) {
    await installation[Symbol.asyncDispose]();
    throw error;
  }
}

/** A cluster that has the images and a volume, and no chart yet. Needs root on Linux; minutes where nothing is built yet. */
export async function startCluster(): Promise<Installation> {
  const node = await startNode();
  try {
    await provideImages(node);
    await provideVolume(node);
    return installationOn(node);
  } catch (error) {
    await node[Symbol.asyncDispose]();
    throw error;
  }
}

const WAIT = ['--wait', '--timeout', '4m'];

function installationOn(node: NodeCluster): Installation {
  const { kubeconfig } = node;
  const kubectl = (...args: string[]) => node.kubectl(...args);
  const folder = dirname(kubeconfig);
  const atRelease = (...args: string[]) => helm(...args, '--namespace', RELEASE_NAMESPACE, '--kubeconfig', kubeconfig);
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
    helm: atRelease,
    async install(...values) {
      await atRelease('install', 'temper', CHART, '--create-namespace', '--values', VALUES, ...values, ...WAIT);
    },
    upgrade: (...more) => atRelease('upgrade', 'temper', CHART, '--values', VALUES, ...more, ...WAIT),
    async waitFor(object, condition, namespace, seconds = 60) {
      await kubectl('wait', object, `--for=condition=${condition}`, '-n', namespace, `--timeout=${seconds}s`);
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  };
}

async function temper(kubeconfig: string, args: string[], more: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const program = join(ROOT, 'bin/kubectl-temper');
  const env = { PATH: process.env['PATH'] ?? '', HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig, ...more };
  const options = { env, maxBuffer: 64 * MEBIBYTE, timeout: PATIENCE_MS };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === 'number') resolve({ code, stdout, stderr });
      else reject(new Error(`kubectl temper ${args.join(' ')} did not end: ${stdout}${stderr}`, { cause: error }));
    });
  });
}

type Node = Pick<NodeCluster, 'admin' | 'kubeconfig' | 'buildImage' | 'importImage'>;

/** Makes the project's images, built from the sources as they are, and the server of the bus known to the node. */
export async function provideImages(node: Node): Promise<void> {
  await promisify(execFile)('make', ['-s', 'stage'], { cwd: ROOT, maxBuffer: 64 * MEBIBYTE });
  await node.buildImage(join(ROOT, 'Containerfile'), `localhost/temper:${TAG}`);
  await node.buildImage(join(ROOT, 'sandbox-image/Containerfile'), `localhost/temper-sandbox:${TAG}`);
  await provideProgram(node, await tool('nats-server'), `localhost/nats:${TAG}`);
}

/** Makes a program of this machine, by path or name, known to the node as an image. */
export async function provideProgram(node: Node, program: string, image: string): Promise<void> {
  const archive = join(dirname(node.kubeconfig), 'program.tar');
  await archiveProgram(program, image, archive);
  await node.importImage(archive);
  await rm(archive);
}

/** The folder where the server of the bus keeps its store. */
export function volumeOf({ kubeconfig }: Pick<Node, 'kubeconfig'>): string {
  return join(dirname(kubeconfig), 'volumes/nats');
}

/** What a cluster has and a lone node lacks: a volume for the server of the bus. */
export async function provideVolume(node: Node): Promise<void> {
  const path = volumeOf(node);
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
