import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CONTAINERD } from './config.ts';
import type { Namespaces } from './namespaces.ts';

const run = promisify(execFile);
const SCRIPT = fileURLToPath(new URL('images.sh', import.meta.url));

/** Imports the images of a docker archive into the node. */
export async function importImage(space: Namespaces, archive: string): Promise<void> {
  await space.run('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'images', 'import', resolve(archive));
}

/** Writes an archive of an image with one program, given by path or name, as its entry point. */
export async function archiveProgram(program: string, image: string, archive: string): Promise<void> {
  await run(SCRIPT, ['program', program, image, archive]);
}

/** Builds a Containerfile on the project's base image, with the repository as its context, and imports it under the name. */
export async function buildImage(
  space: Namespaces,
  folder: string,
  containerfile: string,
  name: string,
): Promise<void> {
  const archive = join(folder, 'images', `${name.replace(/[^A-Za-z0-9.-]/g, '-')}.tar`);
  await run(SCRIPT, ['build', containerfile, name, archive], { maxBuffer: 64 * 1024 * 1024 });
  await importImage(space, archive);
  await rm(archive);
}

/** Stages the working tree, builds the two images of the project under the tag, and imports them. */
export async function buildRelease(space: Namespaces, folder: string, tag: string): Promise<void> {
  const images = join(folder, 'images');
  await run(SCRIPT, ['release', tag, images], { maxBuffer: 64 * 1024 * 1024 });
  for (const name of ['temper', 'temper-sandbox']) {
    const archive = join(images, `${name}.tar`);
    await importImage(space, archive);
    await rm(archive);
  }
}
