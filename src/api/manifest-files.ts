import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { TemperError, hasErrno } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

/** Larger than any manifest file in practice; a larger file is a mistake or an attack. */
export const MAX_FILE_BYTES = 1024 * 1024;

const MAX_FILES = 2_000;
const EXTENSIONS: readonly string[] = ['.yaml', '.yml', '.json'];

/**
 * The manifest files at the paths: a file with any name, or all *.yaml, *.yml and *.json files below a folder, sorted by name.
 * The result contains no file twice. Throws TEMPER_MANIFEST_UNREADABLE.
 */
export async function findManifestFiles(paths: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const path of paths) {
    const info = await stat(path).catch((error: unknown) => {
      throw unreadable(path, error);
    });
    const files = info.isDirectory() ? await filesBelow(path) : [path];
    for (const file of files) found.add(file);
    if (found.size > MAX_FILES) {
      throw new TemperError(
        'TEMPER_MANIFEST_UNREADABLE',
        `${printable(path)}: more than ${MAX_FILES} manifest files; name fewer`,
      );
    }
  }
  return [...found];
}

/**
 * Symbolic links inside a folder are not followed, so no file outside the folder is read. Hidden folders, such as `.temper` and
 * `.github`, and installed packages contain no manifests.
 */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    throw unreadable(folder, error);
  });
  return entries
    .filter((entry) => entry.isFile() && EXTENSIONS.includes(extname(entry.name).toLowerCase()))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !isHidden(relative(folder, file)))
    .sort();
}

/** A name that starts with two dots is not hidden: a mounted ConfigMap has its files in such a folder. */
function isHidden(path: string): boolean {
  return path.split(sep).some((part) => /^\.[^.]/.test(part) || part === 'node_modules');
}

/** The bytes of a file, or undefined when the file exceeds MAX_FILE_BYTES. Never reads more than one byte beyond the limit. */
export async function readBounded(path: string): Promise<Uint8Array | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, 'r');
    const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) return buffer.subarray(0, length);
      length += bytesRead;
    }
    return undefined;
  } catch (error) {
    throw unreadable(path, error);
  } finally {
    await handle?.close();
  }
}

function unreadable(path: string, error: unknown): TemperError {
  const why = hasErrno(error, 'ENOENT')
    ? 'does not exist'
    : hasErrno(error, 'EACCES')
      ? 'may not be read'
      : 'cannot be read';
  return new TemperError('TEMPER_MANIFEST_UNREADABLE', `${printable(path)} ${why}`, { cause: error });
}
