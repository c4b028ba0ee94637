import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { TemperError, hasErrno } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

/** Larger than any set of manifests people write in one file; a larger one is a mistake or an attack. */
export const LARGEST_FILE = 1024 * 1024;

const MOST_FILES = 2_000;
const EXTENSIONS: readonly string[] = ['.yaml', '.yml', '.json'];

/**
 * The manifest files the paths stand for: a file is itself whatever it is called, a folder is all *.yaml, *.yml and *.json
 * below it in the order of their names. No file comes twice. Throws TEMPER_MANIFEST_UNREADABLE.
 */
export async function findManifestFiles(paths: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const path of paths) {
    const info = await stat(path).catch((error: unknown) => {
      throw unreadable(path, error);
    });
    const files = info.isDirectory() ? await filesBelow(path) : [path];
    for (const file of files) found.add(file);
    if (found.size > MOST_FILES) {
      throw new TemperError(
        'TEMPER_MANIFEST_UNREADABLE',
        `${printable(path)}: more than ${MOST_FILES} manifest files; name fewer`,
      );
    }
  }
  return [...found];
}

/** Links inside a folder are not followed: a set of manifests ends where its folder ends. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    throw unreadable(folder, error);
  });
  return entries
    .filter((entry) => entry.isFile() && EXTENSIONS.includes(extname(entry.name).toLowerCase()))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** The bytes of a file, or undefined when there are more than allowed; never more is read. */
export async function readBounded(path: string): Promise<Uint8Array | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, 'r');
    const buffer = Buffer.alloc(LARGEST_FILE + 1);
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
