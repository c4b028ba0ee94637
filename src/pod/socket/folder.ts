import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';

/** The agent's folder on the volume both containers mount, and what lies in it. */
export function socketPaths(run: string): { folder: string; socket: string; ready: string } {
  const folder = join(run, 'agent');
  return { folder, socket: join(folder, 'sandbox.sock'), ready: join(folder, 'ready') };
}

const MODE = 0o750;

/**
 * Makes the folder, or takes the one a former process of this user left. Throws TEMPER_POD_INVALID for one that somebody else
 * made: whoever was first there could listen in the agent's place.
 */
export async function ownFolder(run: string, uid: number): Promise<void> {
  const { folder, socket, ready } = socketPaths(run);
  try {
    await mkdir(folder, { mode: MODE });
  } catch (cause) {
    if (!hasErrno(cause, 'EEXIST')) {
      throw new TemperError('TEMPER_POD_INVALID', `${folder} cannot be made; mount a volume in memory at ${run}`, {
        cause,
      });
    }
  }
  await assertOwned(folder, uid);
  await chmod(folder, MODE);
  await Promise.all([rm(socket, { force: true }), rm(ready, { force: true })]);
}

/** Throws TEMPER_POD_INVALID unless this is a folder of that user in which nobody else writes. */
export async function assertOwned(folder: string, uid: number): Promise<void> {
  const found = await lstat(folder);
  const problem = !found.isDirectory()
    ? 'is not a folder'
    : found.uid !== uid
      ? `belongs to user ${found.uid} and not to ${uid}`
      : (found.mode & 0o022) === 0
        ? undefined
        : 'can be written by others';
  if (problem !== undefined) {
    throw new TemperError(
      'TEMPER_POD_INVALID',
      `${folder} ${problem}; whoever made it may listen in the agent's place`,
    );
  }
}
