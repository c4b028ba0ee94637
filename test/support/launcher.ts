import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const SOURCE = resolve(import.meta.dirname, '../../sandbox-image/launcher/launcher.c');

/** Builds the launcher in the folder, as the images have it, and returns its path. */
export async function buildLauncher(folder: string): Promise<string> {
  const launcher = join(folder, 'launcher');
  await promisify(execFile)('cc', ['-static', '-Os', '-Wall', '-Wextra', '-Werror', '-o', launcher, SOURCE]);
  return launcher;
}
