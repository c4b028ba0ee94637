import { spawnSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { pollAssertion, StopPolling } from '../support/poll.ts';
import { hasExited, killServer, logTail, startServer } from './process.ts';
import { tool } from './tools.ts';

/** A folder on a disk that can become slow. Disposing unmounts it, also when a process has files open in it. */
export interface SlowDisk extends AsyncDisposable {
  /** From now on each write and each fsync takes `delayMs` longer. */
  slowDown(): void;
  /** Ends that. */
  restore(): void;
  /** Unmounts the folder at once, for a handler of the end of the process. */
  unmount(): void;
}

/** Mounts an empty folder at `path`, by FUSE. Its files are in `<path>.disk`. Needs Linux and root. */
export async function mountSlowDisk(path: string, delayMs: number): Promise<SlowDisk> {
  const program = await tool('slow-disk');
  const source = `${path}.disk`;
  await mkdir(source);
  const flags = [`${delayMs}ms`, source, path];
  const name = `${basename(path)}-disk`;
  const server = await startServer(dirname(path), { name, path: program, flags, deathSignal: 'TERM' });
  await pollAssertion(`the mount of ${path}`, async () => {
    const log = await logTail(server);
    if (hasExited(server)) throw new StopPolling(`slow-disk ended: ${log}`);
    if (!log.includes('mounted')) throw new Error(`log: ${log}`);
  });
  const unmount = () => void spawnSync('umount', ['--lazy', path]);
  return {
    slowDown: () => void server.child.kill('SIGUSR1'),
    restore: () => void server.child.kill('SIGUSR2'),
    unmount,
    async [Symbol.asyncDispose]() {
      unmount();
      await killServer(server);
    },
  };
}
