import { rm } from 'node:fs/promises';
import { removeCgroups } from './cgroups.ts';
import { until } from './namespaces.ts';
import { removeNetwork } from './network.ts';
import { isRunning, killNoted, readState } from './state.ts';

/** Ends the cluster of a folder and removes all it left: processes, mounts and networks end with one process. Nothing there is fine. */
export async function down(folder: string): Promise<void> {
  const state = await readState(folder);
  if (state !== undefined) {
    if (await isRunning(state)) {
      await removeNetwork(state.pid);
      process.kill(state.pid, 'SIGKILL');
    }
    await killNoted(folder);
    const gone = async () => {
      if (await isRunning(state)) throw new Error(`process ${state.pid} still runs`);
    };
    await until(gone, 'the cluster did not end');
    await removeCgroups(state.cgroup);
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
