/** Bundles the command line of this checkout. `bin/temper` starts the bundle as long as no source is newer. Usage: bundle-cli.ts <folder> */
import { chmod, mkdir, mkdtemp, rename, rm, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { bundle } from './bundle.ts';

async function main(folder: string): Promise<void> {
  const startedAt = new Date();
  await mkdir(dirname(folder), { recursive: true });
  // Moved into its place, so that an interrupt leaves no part of a bundle there.
  const made = await mkdtemp(`${folder}-`);
  try {
    await bundle('cli', made);
    // As a folder of a checkout: other users may run its commands.
    await chmod(made, 0o755);
    // A source that was changed meanwhile may be missing in the bundle, and must be newer.
    await utimes(join(made, 'cli.mjs'), startedAt, startedAt);
    await rm(folder, { recursive: true, force: true });
    await rename(made, folder);
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    throw error;
  }
}

const [, , folder] = process.argv;
if (folder === undefined) throw new Error('usage: bundle-cli.ts <folder>');
await main(resolve(folder));
