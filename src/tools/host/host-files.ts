/** Reads a file for guest code: a regular file of bounded size whose real path is below a root. */
import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { CallOptions } from '../../lib/call-options.ts';

const MAX_FILE_BYTES = 1_048_576;
const MAX_PATH = 4_096;

/** The path of a file after all links were resolved, relative to the root as it was configured. */
export interface ResolvedFile {
  absolute: string;
  /** The path below the workspace; undefined for a file outside it. */
  relative: string | undefined;
}

/** Reads a file as UTF-8, or throws TEMPER_FILE_DENIED or TEMPER_FILE_FAILED. `refuse` receives the real path of the file and returns the reason why it may not be read. */
export type FileReader = (
  path: string,
  refuse: (found: ResolvedFile) => string | undefined,
  op: CallOptions,
) => Promise<string>;

/**
 * Reads the file as UTF-8. `refuse` returns the reason why a file may not be read; it receives the real path, so a link
 * cannot avoid it. Files below the `closed` folders are never read. Throws TEMPER_FILE_DENIED or TEMPER_FILE_FAILED.
 */
export async function readFileBelow(
  path: string,
  workspace: string,
  roots: readonly string[],
  refuse: (found: ResolvedFile) => string | undefined | Promise<string | undefined>,
  closed: readonly string[] = [],
): Promise<string> {
  const shown = `"${printable(path, 200)}"`;
  if (path === '' || path.includes('\0') || path.length > MAX_PATH) {
    throw new TemperError('TEMPER_FILE_DENIED', `${shown} is not a path`);
  }
  // Check the path as written first, so that an error does not reveal whether a file outside the roots exists.
  const written = resolve(workspace, path);
  if (!roots.some((root) => isBelow(resolve(root), written))) throw outside(shown);
  const real = await orFailed(shown, () => realpath(written));
  const found = await locate(real, workspace, roots);
  if (found === undefined || (await protectedFolderCheck(closed))(real)) throw outside(shown);
  const reason = await refuse(found);
  if (reason !== undefined) throw new TemperError('TEMPER_FILE_DENIED', `${shown} may not be read: ${reason}`);
  return orFailed(shown, () => readPlainFile(real, shown));
}

/** Returns a check whether a real path is one of the folders that no tool may open, or below one; the folders may be links. */
export async function protectedFolderCheck(closed: readonly string[]): Promise<(real: string) => boolean> {
  const folders = await Promise.all(closed.map((folder) => realpath(folder).catch(() => resolve(folder))));
  return (real) => folders.some((folder) => real === folder || isBelow(folder, real));
}

async function locate(real: string, workspace: string, roots: readonly string[]): Promise<ResolvedFile | undefined> {
  for (const root of roots) {
    const realRoot = await realpath(root).catch(() => undefined);
    if (realRoot === undefined || !isBelow(realRoot, real)) continue;
    const absolute = resolve(root, relative(realRoot, real));
    const workspaceRoot = resolve(workspace);
    return { absolute, relative: isBelow(workspaceRoot, absolute) ? relative(workspaceRoot, absolute) : undefined };
  }
  return undefined;
}

function isBelow(root: string, path: string): boolean {
  const fromRoot = relative(root, path);
  return fromRoot !== '' && fromRoot !== '..' && !fromRoot.startsWith(`..${sep}`) && !isAbsolute(fromRoot);
}

/** Opens the file without following a final link and without blocking on a pipe, then checks that it opened the file that was checked. */
async function readPlainFile(real: string, shown: string): Promise<string> {
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const opened = await file.stat();
    const named = await stat(await realpath(real));
    if (opened.ino !== named.ino || opened.dev !== named.dev || (await realpath(real)) !== real) throw outside(shown);
    if (!opened.isFile()) throw new TemperError('TEMPER_FILE_FAILED', `${shown} is not a regular file`);
    if (opened.size > MAX_FILE_BYTES) throw tooLarge(shown);
    const bytes = Buffer.alloc(MAX_FILE_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, null);
      length += bytesRead;
      if (bytesRead === 0 || length === bytes.length) break;
    }
    if (length > MAX_FILE_BYTES) throw tooLarge(shown);
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
  return new TemperError('TEMPER_FILE_DENIED', `${shown} is outside the folders that may be read`);
}

function tooLarge(shown: string): TemperError {
  return new TemperError('TEMPER_FILE_FAILED', `${shown} is larger than ${MAX_FILE_BYTES} bytes`);
}
