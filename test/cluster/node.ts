import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ApiClient } from './api-client.ts';
import { clientAs } from './kubeconfig.ts';
import { down } from './node/down.ts';
import { buildImage, buildRelease, importImage } from './node/images.ts';
import { isRunning, readState } from './node/state.ts';
import { up } from './node/up.ts';
import { tool } from './tools.ts';

const run = promisify(execFile);
const PREFIX = 'temper-node-';

/** A cluster of one node with real pods. Disposing stops it and removes everything it created on the machine. */
export interface NodeCluster extends AsyncDisposable {
  /** `https://<address>:6443`, from the machine and from pods. */
  readonly url: string;
  /** The path of a kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** A client with the rights of a cluster administrator. */
  readonly admin: ApiClient;
  /** Runs kubectl as an administrator and returns its stdout. On failure the error's message contains its stderr. */
  kubectl(...args: string[]): Promise<string>;
  /** Imports the images of a docker archive into the node. */
  importImage(archive: string): Promise<void>;
  /** Builds a Containerfile on the project's base image and imports it under the name, e.g. `localhost/temper:test`. */
  buildImage(containerfile: string, name: string): Promise<void>;
  /** Stages the working tree, builds the images `localhost/temper` and `localhost/temper-sandbox` with the tag, and imports them. */
  buildRelease(tag: string): Promise<void>;
  /** Runs a program in the node's namespaces, e.g. `ip` or `nft`. */
  onNode(program: string, ...args: string[]): Promise<string>;
  /** The log of a component: `kubelet`, `containerd`, `kube-apiserver`, `network-policy`, … */
  log(component: string): Promise<string>;
}

/** Starts a node. Needs root on Linux. On failure it throws and leaves no process and no file. */
export async function startNode(): Promise<NodeCluster> {
  await removeStaleNodes();
  const folder = await mkdtemp(join(tmpdir(), PREFIX));
  // Removes the cluster when the test's process ends early.
  const removeAtExit = () => {
    const script = fileURLToPath(new URL('node/main.ts', import.meta.url));
    spawnSync(process.execPath, [script, 'down', folder], { stdio: 'inherit' });
  };
  process.once('exit', removeAtExit);
  const stop = async () => {
    await down(folder);
    process.removeListener('exit', removeAtExit);
  };
  try {
    const { space, url, kubeconfig } = await up(folder, { parentBound: true });
    const admin = await clientAs(folder, url, 'admin');
    const kubectl = await tool('kubectl');
    return {
      url,
      kubeconfig,
      admin,
      kubectl: async (...args) => {
        const options = { env: { KUBECONFIG: kubeconfig, HOME: folder }, maxBuffer: 64 * 1024 * 1024 };
        return (await run(kubectl, args, options)).stdout;
      },
      importImage: (archive) => importImage(space, archive),
      buildImage: (containerfile, name) => buildImage(space, folder, containerfile, name),
      buildRelease: (tag) => buildRelease(space, folder, tag),
      onNode: (program, ...args) => space.run(program, ...args),
      log: (component) => readFile(join(folder, 'log', `${component}.log`), 'utf8'),
      [Symbol.asyncDispose]: async () => {
        admin[Symbol.dispose]();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Removes files and empty cgroups of clusters whose tests were killed. Their processes ended with the test. */
async function removeStaleNodes(): Promise<void> {
  const names = await readdir(tmpdir());
  for (const folder of names.filter((name) => name.startsWith(PREFIX)).map((name) => join(tmpdir(), name))) {
    const state = await readState(folder);
    if (state !== undefined && !(await isRunning(state))) await down(folder);
  }
}
