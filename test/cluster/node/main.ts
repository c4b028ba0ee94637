// up FOLDER                          starts a cluster of one node that keeps running, and prints the path of its kubeconfig
// image FOLDER CONTAINERFILE NAME    builds an image on the base image, with the repository as context, and imports it into the node
// down FOLDER                        stops the cluster and removes the folder
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { down } from './down.ts';
import { buildImage } from './images.ts';
import { namespacesOf } from './namespaces.ts';
import { isRunning, readState } from './state.ts';
import { up } from './up.ts';

async function main([verb = '', path = '', containerfile = '', name = '']: string[]): Promise<void> {
  const folder = resolve(path);
  const kubeconfig = join(folder, 'admin.kubeconfig');
  if (verb === 'down') await down(folder);
  else if (verb === 'image') await buildImage(namespacesOf(folder, await pidOf(folder)), folder, containerfile, name);
  else if (verb === 'up') await upOnce(folder).then(() => process.stdout.write(`${kubeconfig}\n`));
  else throw new Error('usage: main.ts up|down FOLDER, or main.ts image FOLDER CONTAINERFILE NAME');
}

async function pidOf(folder: string): Promise<number> {
  const state = await readState(folder);
  if (state === undefined || !(await isRunning(state)))
    throw new Error(`no cluster is running in ${folder}; start one first`);
  return state.pid;
}

async function upOnce(folder: string): Promise<void> {
  const state = await readState(folder);
  if (state !== undefined && (await isRunning(state))) return;
  // Removes leftovers of a cluster that ended with a reboot.
  await down(folder);
  await mkdir(folder, { recursive: true });
  try {
    await up(folder, { parentBound: false });
  } catch (error) {
    await down(folder);
    throw error;
  }
}

await main(process.argv.slice(2));
