import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { MAX_FILE_BYTES, readBounded } from '../../api/manifest-files.ts';
import type { SourceFile } from '../../interop/openfang/import-files.ts';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { utf8Text } from '../input/input-files.ts';

const MAX_FILES = 1_000;
/** OpenFang keeps each agent in a folder of its name. */
const GENERIC_NAME = 'agent';

/** The manifests at the paths: a file of any name, or all *.toml files below a folder. No file twice. Throws TEMPER_MANIFEST_UNREADABLE. */
export async function readSourceFiles(paths: readonly string[], cwd: string): Promise<SourceFile[]> {
  const files = new Map<string, string>();
  for (const path of paths) {
    for (const file of await filesAt(path, cwd)) files.set(resolve(cwd, file), file);
    if (files.size > MAX_FILES)
      throw new TemperError('TEMPER_MANIFEST_UNREADABLE', `more than ${MAX_FILES} files; name fewer`);
  }
  return Promise.all([...files].map(([path, source]) => readSource(path, source)));
}

/** Links inside a folder are not followed, and hidden folders are not searched. */
async function filesAt(path: string, cwd: string): Promise<string[]> {
  const root = resolve(cwd, path);
  try {
    if (!(await stat(root)).isDirectory()) return [path];
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && extname(entry.name).toLowerCase() === '.toml')
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .filter((name) => !name.split('/').some((part) => part.startsWith('.')))
      .sort()
      .map((name) => join(path, name));
  } catch (error) {
    const why = hasErrno(error, 'ENOENT') ? 'does not exist' : 'cannot be read';
    throw new TemperError('TEMPER_MANIFEST_UNREADABLE', `${printable(path, 400)} ${why}`, { cause: error });
  }
}

async function readSource(path: string, source: string): Promise<SourceFile> {
  const extension = extname(path);
  const stem = basename(path, extension);
  const file = {
    source,
    name: stem === GENERIC_NAME ? basename(dirname(path)) : stem,
    format: extension.toLowerCase() === '.json' ? ('json' as const) : ('toml' as const),
  };
  const bytes = await readBounded(path);
  if (bytes === undefined) return { ...file, problem: `the file has more than ${MAX_FILE_BYTES} bytes` };
  try {
    return { ...file, text: utf8Text(bytes, () => new Error('not UTF-8')) };
  } catch {
    return { ...file, problem: 'the file is not UTF-8 text' };
  }
}
