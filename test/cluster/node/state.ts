import { appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { killStarted, startedAt } from './process-start.ts';

/** The data needed to stop a cluster that another process started. */
export interface NodeState {
  /** The process with which all other processes of the cluster end. */
  readonly pid: number;
  /** The start time of the process in clock ticks, to detect a reused pid. */
  readonly started: string;
  /** The name of the cluster's cgroups. */
  readonly cgroup: string;
}

export async function writeState(folder: string, pid: number, cgroup: string): Promise<void> {
  const state: NodeState = { pid, started: (await startedAt(pid)) ?? '', cgroup };
  // In one step: another test that starts a node reads the states of all of them.
  const path = join(folder, 'state.json');
  await writeFile(`${path}.new`, JSON.stringify(state));
  await rename(`${path}.new`, path);
}

/** Records a process that runs outside the namespaces and waits for one inside: when stopped, it does not end with the namespaces. */
export async function recordProcess(folder: string, pid: number): Promise<void> {
  const started = await startedAt(pid);
  if (started !== undefined) await appendFile(join(folder, 'processes'), `${pid} ${started}\n`);
}

/** Kills all recorded processes that are still running. */
export async function killRecorded(folder: string): Promise<void> {
  const text = await readFile(join(folder, 'processes'), 'utf8');
  for (const line of text.split('\n').filter((entry) => entry !== '')) {
    const [pid, started] = line.split(' ') as [string, string];
    await killStarted(Number(pid), started);
  }
}

/** Reads the state of a cluster; undefined when the folder holds none. */
export async function readState(folder: string): Promise<NodeState | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, 'state.json'), 'utf8')) as NodeState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whether the process of the state is running, and not another one with the same pid. */
export async function isRunning({ pid, started }: NodeState): Promise<boolean> {
  return (await startedAt(pid)) === started;
}
