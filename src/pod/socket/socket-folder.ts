import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';

/** The agent container's folder on the shared volume, its socket, and its readiness file. */
export function socketPaths(run: string): { folder: string; socket: string; ready: string } {
  const folder = join(run, 'agent');
  return { folder, socket: join(folder, 'sandbox.sock'), ready: join(folder, 'ready') };
}

const FOLDER_MODE = 0o750;

/**
 * Creates the folder, or reuses the one that an earlier process of this user created. Throws TEMPER_POD_INVALID for a folder of
 * another user: its owner could listen on the socket in the agent's place.
 */
export async function prepareSocketFolder(run: string, uid: number): Promise<void> {
  const { folder, socket, ready } = socketPaths(run);
  try {
    await mkdir(folder, { mode: FOLDER_MODE });
  } catch (cause) {
    if (!hasErrno(cause, 'EEXIST')) {
      throw new TemperError('TEMPER_POD_INVALID', `${folder} cannot be created; mount an in-memory volume at ${run}`, {
        cause,
      });
    }
  }
  await assertFolderOwner(folder, uid);
  await chmod(folder, FOLDER_MODE);
  await Promise.all([rm(socket, { force: true }), rm(ready, { force: true })]);
}

/** Throws TEMPER_POD_INVALID unless the folder belongs to `uid` and no other user can write to it. */
export async function assertFolderOwner(folder: string, uid: number): Promise<void> {
  const stats = await lstat(folder);
  const problem = !stats.isDirectory()
    ? 'is not a folder'
    : stats.uid !== uid
      ? `belongs to user ${stats.uid} and not to ${uid}`
      : (stats.mode & 0o022) === 0
        ? undefined
        : 'can be written by others';
  if (problem !== undefined) {
    throw new TemperError(
      'TEMPER_POD_INVALID',
      `${folder} ${problem}; another process could listen in the agent's place`,
    );
  }
}
