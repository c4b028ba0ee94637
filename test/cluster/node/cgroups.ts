import { mkdir, readdir, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pollAssertion } from '../../support/poll.ts';

const ROOT = '/sys/fs/cgroup';
/**
 * The share of processor time of all pods together, ten times the default, per version of cgroups. On a machine of its own, a node
 * competes with a few system processes in one cgroup. Here each process outside of a cgroup counts as much as all pods with the default
 * share, so that two busy processes would starve twenty starting pods.
 */
const CPU_SHARES: readonly [file: string, value: string][] = [
  ['cpu.shares', '10240'],
  ['cpu.weight', '1000'],
];

/** The roots of all hierarchies: one in cgroup v2, one per controller in cgroup v1. */
async function hierarchies(): Promise<string[]> {
  if (await exists(join(ROOT, 'cgroup.controllers'))) return [ROOT];
  const names = (await readdir(ROOT, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  return names.map(({ name }) => join(ROOT, name));
}

/** Creates a cgroup in every hierarchy: the kubelet needs the parent of its pods' cgroups to exist. */
export async function makeCgroups(name: string): Promise<void> {
  for (const root of await hierarchies()) {
    await mkdir(join(root, name), { recursive: true });
    for (const [file, value] of CPU_SHARES) {
      const path = join(root, name, file);
      if (await exists(path)) await writeFile(path, value);
    }
  }
}

/** Removes the cgroups recursively. Retries, because the kernel may need a moment to reap the killed processes. */
export async function removeCgroups(name: string): Promise<void> {
  for (const root of await hierarchies()) {
    await pollAssertion(`the cgroup ${join(root, name)} to be removed`, () => removeTree(join(root, name)));
  }
}

async function removeTree(path: string): Promise<void> {
  if (!(await exists(path))) return;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeTree(join(path, entry.name));
  }
  await rmdir(path);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
