import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What is needed to end a cluster that another process started. */
export interface State {
  /** Of the process that all others of the cluster end with. */
  readonly pid: number;
  /** When it started, in the kernel's own count: another process may have the number by now. */
  readonly started: string;
  /** The name of its cgroups. */
  readonly cgroup: string;
}

export async function writeState(folder: string, pid: number, cgroup: string): Promise<void> {
  const state: State = { pid, started: (await startedAt(pid)) ?? '', cgroup };
  await writeFile(join(folder, 'state.json'), JSON.stringify(state));
}

/** Notes a process that was started outside the namespaces: it waits for one inside and need not end with it when it is stopped. */
export async function noteProcess(folder: string, pid: number): Promise<void> {
  const started = await startedAt(pid);
  if (started !== undefined) await appendFile(join(folder, 'processes'), `${pid} ${started}\n`);
}

/** Ends by SIGKILL what was noted and still runs. */
export async function killNoted(folder: string): Promise<void> {
  const text = await readFile(join(folder, 'processes'), 'utf8');
  for (const line of text.split('\n').filter((entry) => entry !== '')) {
    const [pid, started] = line.split(' ') as [string, string];
    if ((await startedAt(Number(pid))) === started) process.kill(Number(pid), 'SIGKILL');
  }
}

/** Undefined when the folder holds no cluster. */
export async function readState(folder: string): Promise<State | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, 'state.json'), 'utf8')) as State;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whether the very process of the state runs. */
export async function isRunning({ pid, started }: State): Promise<boolean> {
  return (await startedAt(pid)) === started;
}

async function startedAt(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may hold anything, come the fields from the third on; a zombie is no running process.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
