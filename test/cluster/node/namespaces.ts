import { execFile, spawn } from 'node:child_process';
import { access, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { recordProcess } from './state.ts';
import { pollAssertion } from '../../support/poll.ts';

const run = promisify(execFile);
/** Debian installs nft and ip in folders that an ordinary user's PATH does not contain. */
const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`;

/** Separate network, mount and PID namespaces. Every process in them ends when the process `pid` ends. */
export interface Namespaces {
  /** The process that holds the namespaces, in the PID namespace of the machine. */
  readonly pid: number;
  /** Runs a program in the namespaces and returns its stdout. Throws when it fails. */
  run(program: string, ...args: string[]): Promise<string>;
  /** Starts a program in the namespaces that writes `log/<name>.log` in the folder. */
  start(name: string, program: string, ...args: string[]): Promise<void>;
}

/** Creates the namespaces. They end when their process is killed and, with `parentBound`, when this process ends for any reason. */
export async function makeNamespaces(folder: string, parentBound: boolean): Promise<Namespaces> {
  await Promise.all(['kubelet', 'log'].map((name) => mkdir(join(folder, name), { recursive: true })));
  const init = fileURLToPath(new URL('init.sh', import.meta.url));
  const isolate = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
  const hold = ['unshare', ...isolate, init, folder];
  const [program = '', ...args] = parentBound ? ['setpriv', '--pdeathsig', 'KILL', ...hold] : hold;
  const pid = await spawnDetached(folder, 'init', program, args);
  const space = namespacesOf(folder, pid);
  await pollAssertion(`the namespaces (see ${join(folder, 'log/init.log')})`, () => access(join(folder, 'init.ready')));
  return space;
}

/** The namespaces that a process holds. */
export function namespacesOf(folder: string, pid: number): Namespaces {
  const spaces = [`--net=/proc/${pid}/ns/net`, `--mount=/proc/${pid}/ns/mnt`, `--pid=/proc/${pid}/ns/pid_for_children`];
  return {
    pid,
    run: async (program, ...args) => {
      const options = { maxBuffer: 64 * 1024 * 1024, env: { PATH } };
      return (await run('nsenter', [...spaces, program, ...args], options)).stdout;
    },
    start: async (name, program, ...args) => {
      await spawnDetached(folder, name, 'nsenter', [...spaces, program, ...args]);
    },
  };
}

async function spawnDetached(folder: string, name: string, program: string, args: readonly string[]): Promise<number> {
  const log = await open(join(folder, 'log', `${name}.log`), 'a');
  try {
    const child = spawn(program, args, {
      cwd: folder,
      stdio: ['ignore', log.fd, log.fd],
      detached: true,
      env: { PATH, GOGC: process.env['GOGC'] },
    });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    child.unref();
    const pid = child.pid ?? 0;
    await recordProcess(folder, pid);
    return pid;
  } finally {
    await log.close();
  }
}
