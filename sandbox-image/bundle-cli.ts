/** Bundles the command line of this checkout. `bin/temper` starts the bundle as long as no source is newer. Usage: bundle-cli.ts <folder> */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { bundle } from './bundle.ts';

const [, , folder] = process.argv;
if (folder === undefined) throw new Error('usage: bundle-cli.ts <folder>');
await rm(folder, { recursive: true, force: true });
await bundle('cli', resolve(folder));
