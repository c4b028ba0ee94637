import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { hasErrno, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { protectedFolderCheck } from '../tools/host/host-files.ts';

const MAX_PATH = 4_096;

/** Whether `path` is the folder itself or below it. Both must be absolute and resolved. */
export function isWithin(folder: string, path: string): boolean {
  const fromFolder = relative(folder, path);
  return fromFolder !== '..' && !fromFolder.startsWith(`..${sep}`) && !isAbsolute(fromFolder);
}

/**
 * The absolute form of a path as written, without resolving links. Throws TEMPER_FILE_DENIED for an invalid path, a path outside the roots
 * and a path in a folder of `closed`.
 */
export function writtenPath(
  path: string,
  workspace: string,
  roots: readonly string[],
  closed: readonly string[] = [],
): string {
  if (path.includes('\0') || path.length > MAX_PATH) {
    throw new TemperError('TEMPER_FILE_DENIED', `"${printable(path, 200)}" is not a path`);
  }
  const written = resolve(workspace, path);
  if (!roots.some((root) => isWithin(resolve(root), written))) throw outside(path);
  if (closed.some((folder) => isWithin(resolve(folder), written))) throw outside(path);
  return written;
}

/** The same for a file: never the workspace itself. */
export function writtenFile(
  path: string,
  workspace: string,
  roots: readonly string[],
  closed: readonly string[] = [],
): string {
  const written = writtenPath(path, workspace, roots, closed);
  if (written !== resolve(workspace)) return written;
  throw new TemperError('TEMPER_FILE_DENIED', `"${printable(path, 200)}" is the workspace itself; name a file in it`);
}

/** The same for an entry of the workspace that a tool changes: never a file of Git. */
export function writtenTarget(path: string, workspace: string, closed: readonly string[] = []): string {
  const written = writtenFile(path, workspace, [workspace], closed);
  assertNotOfGit(written, resolve(workspace), path);
  return written;
}

/** The real path of a folder. Throws TEMPER_FILE_DENIED when a link leads outside the roots, TEMPER_FILE_FAILED when the folder does not exist. */
export async function resolveFolder(
  path: string,
  workspace: string,
  roots: readonly string[],
  closed: readonly string[] = [],
): Promise<string> {
  const written = writtenPath(path, workspace, roots);
  let real: string;
  try {
    real = await realpath(written);
  } catch (cause) {
    const reason = hasErrno(cause, 'ENOENT') ? 'does not exist' : 'cannot be read';
    throw new TemperError('TEMPER_FILE_FAILED', `"${printable(path, 200)}" ${reason}`, { cause });
  }
  if ((await protectedFolderCheck(closed))(real)) throw outside(path);
  for (const root of roots) {
    const realRoot = await realpath(root).catch(() => undefined);
    if (realRoot !== undefined && isWithin(realRoot, real)) return real;
  }
  throw outside(path);
}

/**
 * The real folder and the name of a file to write below the workspace. Creates missing folders, but only after it has refused
 * a path whose links lead outside the workspace.
 */
export async function resolveWriteTarget(
  path: string,
  workspace: string,
  closed: readonly string[] = [],
): Promise<{ folder: string; name: string }> {
  const written = writtenTarget(path, workspace);
  const workspaceRoot = await realpath(workspace);
  const folder = dirname(written);
  const existing = await nearestExisting(folder);
  if (!isWithin(workspaceRoot, existing.real)) throw outside(path);
  const missing = relative(existing.written, folder);
  const isClosed = await protectedFolderCheck(closed);
  if (isClosed(resolve(existing.real, missing))) throw outside(path);
  const target = resolve(existing.real, missing);
  assertNotOfGit(resolve(target, basename(written)), workspaceRoot, path);
  await mkdir(target, { recursive: true });
  // Check the real path again, because the folders may have changed meanwhile.
  const real = await realpath(target);
  if (!isWithin(workspaceRoot, real) || isClosed(resolve(real, basename(written)))) throw outside(path);
  return { folder: real, name: basename(written) };
}

/** What Git runs and where it writes is in this folder, also for the Git of the user. Its own tools change it. */
function assertNotOfGit(real: string, workspaceRoot: string, path: string): void {
  const isOfGit = relative(workspaceRoot, real)
    .split(sep)
    .some((segment) => segment.toLowerCase() === '.git');
  if (!isOfGit) return;
  throw new TemperError(
    'TEMPER_FILE_DENIED',
    `"${printable(path, 200)}" is a file of Git itself; use the git tools to change a repository`,
  );
}

/** The real folder and the name of an existing entry below the workspace. The entry itself may be a link; no link above it leads outside. */
export async function resolveExistingEntry(
  path: string,
  workspace: string,
  closed: readonly string[] = [],
): Promise<{ folder: string; name: string }> {
  const written = writtenTarget(path, workspace);
  const workspaceRoot = await realpath(workspace);
  const folder = await realpath(dirname(written)).catch(() => undefined);
  if (folder === undefined) throw new TemperError('TEMPER_FILE_FAILED', `"${printable(path, 200)}" does not exist`);
  const isClosed = await protectedFolderCheck(closed);
  if (!isWithin(workspaceRoot, folder) || isClosed(resolve(folder, basename(written)))) throw outside(path);
  assertNotOfGit(resolve(folder, basename(written)), workspaceRoot, path);
  return { folder, name: basename(written) };
}

async function nearestExisting(folder: string): Promise<{ written: string; real: string }> {
  let written = folder;
  for (;;) {
    try {
      return { written, real: await realpath(written) };
    } catch (cause) {
      if (!hasErrno(cause, 'ENOENT')) {
        throw new TemperError('TEMPER_FILE_FAILED', `"${printable(folder, 200)}" cannot be reached`, { cause });
      }
      written = dirname(written);
    }
  }
}

function outside(path: string): TemperError {
  return new TemperError(
    'TEMPER_FILE_DENIED',
    `"${printable(path, 200)}" is outside the allowed folders; use a path below the workspace`,
  );
}
