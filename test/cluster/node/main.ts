// up FOLDER: starts a cluster of one node that outlives this process; says how to use it.
// down FOLDER: ends it and removes the folder. Both write the path of the kubeconfig to standard output.
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { down } from './down.ts';
import { isRunning, readState } from './state.ts';
import { up } from './up.ts';

async function main([verb = '', path = '']: string[]): Promise<void> {
  const folder = resolve(path);
  const kubeconfig = join(folder, 'admin.kubeconfig');
  if (verb === 'down') await down(folder);
  else if (verb === 'up') await upOnce(folder);
  else throw new Error('usage: main.ts up|down FOLDER');
  process.stdout.write(`${kubeconfig}\n`);
}

async function upOnce(folder: string): Promise<void> {
  const state = await readState(folder);
  if (state !== undefined && (await isRunning(state))) return;
  // What a machine's restart left.
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
