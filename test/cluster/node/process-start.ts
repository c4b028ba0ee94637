import { open } from 'node:fs/promises';
import { hasErrno } from '../../../src/lib/errors.ts';

/**
 * The start time of a running process in clock ticks, which differs from that of another one with the same pid; undefined when it has ended. A zombie
 * counts as ended. Another process may end it at any moment: before its file is opened (ENOENT) or before that is read (ESRCH).
 */
export async function startedAt(pid: number, openFile: typeof open = open): Promise<string | undefined> {
  try {
    await using file = await openFile(`/proc/${pid}/stat`);
    const text = await file.readFile('utf8');
    // The fields from the third on follow the name, which may contain any character.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch (error) {
    if (hasErrno(error, 'ENOENT') || hasErrno(error, 'ESRCH')) return undefined;
    throw error;
  }
}

/** Kills a process unless it has ended, also between the check of its start time and the signal. */
export async function killStarted(pid: number, started: string): Promise<void> {
  if ((await startedAt(pid)) !== started) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasErrno(error, 'ESRCH')) throw error;
  }
}
