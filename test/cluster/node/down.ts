import { rm } from 'node:fs/promises';
import { removeCgroups } from './cgroups.ts';

import { removeNetwork } from './network.ts';
import { killStarted } from './process-start.ts';
import { isRunning, killRecorded, readState } from './state.ts';
import { pollAssertion } from '../../support/poll.ts';

/**
 * Stops the cluster of a folder and removes everything it created. Processes, mounts and networks end with the process in state.json. Does
 * nothing when the folder holds no cluster.
 */
export async function down(folder: string): Promise<void> {
  const state = await readState(folder);
  if (state !== undefined) {
    if (await isRunning(state)) {
      await removeNetwork(state.pid);
      await killStarted(state.pid, state.started);
    }
    await killRecorded(folder);
    const gone = async () => {
      if (await isRunning(state)) throw new Error(`process ${state.pid} is still running`);
    };
    await pollAssertion(`the end of process ${state.pid}`, gone);
    await removeCgroups(state.cgroup);
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
