import { execFile } from 'node:child_process';
import { chmod, cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Shared libraries that Node needs since version 25, and that base images for C++ programs do not contain. */
const LIBRARIES = ['libatomic.so.1'];
/** Where the dynamic linker of Debian looks, by the architecture as Node names it. */
const FOLDERS: Readonly<Record<string, string>> = {
  x64: 'usr/lib/x86_64-linux-gnu',
  arm64: 'usr/lib/aarch64-linux-gnu',
};

/** Copies them from this machine, which runs the same Node, into the files of an image. Throws when this machine lacks one. */
export async function stageLibraries(node: string, image: string): Promise<void> {
  const found = await librariesOf(node);
  const folder = join(image, FOLDERS[process.arch] ?? 'usr/lib');
  for (const name of LIBRARIES.filter((library) => found.has(library))) {
    const path = found.get(name);
    if (path === undefined)
      throw new Error(`Node needs ${name}, which is not installed; install it (Debian: libatomic1)`);
    await mkdir(folder, { recursive: true });
    await cp(path, join(folder, name), { dereference: true });
    await chmod(join(folder, name), 0o644);
  }
}

/** The path of each library that the program needs; undefined for one that this machine does not have. */
async function librariesOf(program: string): Promise<Map<string, string | undefined>> {
  const { stdout } = await promisify(execFile)('ldd', [program]);
  const lines = [...stdout.matchAll(/^\s*(\S+) => (\S+)/gm)];
  return new Map(lines.map(([, name = '', path = '']) => [name, path.startsWith('/') ? path : undefined]));
}
