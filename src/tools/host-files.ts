/** Reading a file for guest code: below a root as the disk sees it, a plain file, of a bounded size. */
import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { hasErrno, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { Op } from '../lib/operation.ts';

/** Largest file, in bytes. */
const MAX_FILE = 1_048_576;
const MAX_PATH = 4_096;

/** Where a file lies after every link was followed, in terms of the root as it was configured. */
export interface FoundFile {
  absolute: string;
  /** Below the workspace; undefined when it lies elsewhere. */
  relative: string | undefined;
}

/** Reads a file as UTF-8, or throws TEMPER_FILE_DENIED or TEMPER_FILE_FAILED. `refuse` is told where the file really is, and says why it may not be read. */
export type FileReader = (path: string, refuse: (found: FoundFile) => string | undefined, op: Op) => Promise<string>;

/**
 * Reads the file as UTF-8. `refuse` gives the reason why a file may not be read; it sees where the file really is, so a
 * link gains nothing. Nothing below the `closed` folders is read. Throws TEMPER_FILE_DENIED or TEMPER_FILE_FAILED.
 */
export async function readBelow(
  path: string,
  workspace: string,
  roots: readonly string[],
  refuse: (found: FoundFile) => string | undefined | Promise<string | undefined>,
  closed: readonly string[] = [],
): Promise<string> {
  const shown = `"${printable(path, 200)}"`;
  if (path === '' || path.includes('\0') || path.length > MAX_PATH) {
    throw new TemperError('TEMPER_FILE_DENIED', `${shown} is not a path`);
  }
  // Judged as it is written first: a name outside must not even tell whether it exists.
  const written = resolve(workspace, path);
  if (!roots.some((root) => isBelow(resolve(root), written))) throw outside(shown);
  const real = await orFailed(shown, () => realpath(written));
  const found = await locate(real, workspace, roots);
  if (found === undefined || (await closedFolders(closed))(real)) throw outside(shown);
  const reason = await refuse(found);
  if (reason !== undefined) throw new TemperError('TEMPER_FILE_DENIED', `${shown} may not be read: ${reason}`);
  return orFailed(shown, () => readPlainFile(real, shown));
}

/** Tells whether a real path lies in one of the folders that no tool may open, wherever those are. */
export async function closedFolders(closed: readonly string[]): Promise<(real: string) => boolean> {
  const folders = await Promise.all(closed.map((folder) => realpath(folder).catch(() => resolve(folder))));
  return (real) => folders.some((folder) => real === folder || isBelow(folder, real));
}

async function locate(real: string, workspace: string, roots: readonly string[]): Promise<FoundFile | undefined> {
  for (const root of roots) {
    const realRoot = await realpath(root).catch(() => undefined);
    if (realRoot === undefined || !isBelow(realRoot, real)) continue;
    const absolute = resolve(root, relative(realRoot, real));
    const home = resolve(workspace);
    return { absolute, relative: isBelow(home, absolute) ? relative(home, absolute) : undefined };
  }
  return undefined;
}

function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Opens without following a last link and without waiting on a pipe; then the opened file must be the one that was judged. */
async function readPlainFile(real: string, shown: string): Promise<string> {
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const opened = await file.stat();
    const named = await stat(await realpath(real));
    if (opened.ino !== named.ino || opened.dev !== named.dev || (await realpath(real)) !== real) throw outside(shown);
    if (!opened.isFile()) throw new TemperError('TEMPER_FILE_FAILED', `${shown} is not a plain file`);
    if (opened.size > MAX_FILE) throw tooLarge(shown);
    const bytes = Buffer.alloc(MAX_FILE + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, null);
      length += bytesRead;
      if (bytesRead === 0 || length === bytes.length) break;
    }
    if (length > MAX_FILE) throw tooLarge(shown);
    return bytes.toString('utf8', 0, length);
  } finally {
    await file.close();
  }
}

async function orFailed<T>(shown: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    const reason = hasErrno(cause, 'ENOENT') ? 'does not exist' : 'cannot be read';
    throw new TemperError('TEMPER_FILE_FAILED', `${shown} ${reason}`, { cause });
  }
}

function outside(shown: string): TemperError {
  return new TemperError('TEMPER_FILE_DENIED', `${shown} lies outside the folders that may be read`);
}

function tooLarge(shown: string): TemperError {
  return new TemperError('TEMPER_FILE_FAILED', `${shown} is larger than ${MAX_FILE} bytes`);
}
