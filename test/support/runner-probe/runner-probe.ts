/** A native program that attempts what guest code must not reach once it controls a runner, and the expected results. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What the probe attempts to reach. */
export interface ProbeTargets {
  supervisor: number;
  /** A folder with the files `existing` and `removable`, which the user of the probe may change. */
  folder: string;
  node: string;
  /** The Unix socket of the agent container. */
  socket: string;
  /** `address:port` */
  gateway: string;
}

export interface ProbeResults {
  /** The version of Landlock that the kernel reports; 0 without Landlock. */
  landlock: number;
  /** `done`, or the name of the error, by attempt. */
  attempts: Readonly<Record<string, string>>;
}

const WRITES = [
  'create',
  'append',
  'truncate',
  'rename',
  'link',
  'symlink',
  'mkdir',
  'mkfifo',
  'unlink',
  'create-in-tmp',
] as const;
const MEMORY = [
  'memory-write',
  'memory-read',
  'memory-map',
  'environment',
  'open-files',
  'program-of-process',
] as const;
const OTHER_PROCESSES = ['ptrace', 'process-vm-read', 'pidfd-getfd'] as const;
const SIGNALS = ['signal', 'signal-group', 'signal-all', 'signal-thread', 'signal-by-descriptor'] as const;
const SETTINGS = ['limit-of-process', 'priority-of-process', 'processors-of-process'] as const;
const NETWORK = ['gateway', 'dns'] as const;
const UNIX_SOCKETS = ['agent-socket', 'socketpair'] as const;

/** Compiles the probe, statically: the sandbox image has no C library of its own choice. */
export async function buildRunnerProbe(folder: string): Promise<string> {
  const program = join(folder, 'runner-probe');
  const source = join(import.meta.dirname, 'runner-probe.c');
  await promisify(execFile)('cc', ['-static', '-Os', '-Wall', '-Wextra', '-Werror', '-o', program, source]);
  return program;
}

export function probeArguments({ supervisor, folder, node, socket, gateway }: ProbeTargets): string[] {
  const [address = '', port = ''] = gateway.split(':');
  return ['attempt', String(supervisor), folder, node, socket, address, port];
}

export function parseProbe(stdout: string): ProbeResults {
  const { landlock, ...attempts } = Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );
  return { landlock: Number(landlock), attempts };
}

const all = (names: readonly string[], result: string) => Object.fromEntries(names.map((name) => [name, result]));

/** A process of the sandbox container, e.g. the supervisor: it works with files, and no process reads the memory of another one. */
export const IN_SANDBOX: ProbeResults['attempts'] = {
  ...all(WRITES, 'done'),
  ...all(MEMORY, 'EACCES'),
  'read-node': 'EACCES',
  ...all([...OTHER_PROCESSES, ...NETWORK], 'EPERM'),
  ...all([...SIGNALS, 'signal-self', ...SETTINGS, 'limit-of-itself', ...UNIX_SOCKETS], 'done'),
};

/** A runner on a kernel without Landlock can still change files of its user. */
export const IN_RUNNER_WITHOUT_LANDLOCK: ProbeResults['attempts'] = {
  ...IN_SANDBOX,
  ...all([...SIGNALS, ...SETTINGS, ...UNIX_SOCKETS], 'EPERM'),
};

/** A runner on a kernel with this version of Landlock. */
export function inRunner(landlock: number): ProbeResults['attempts'] {
  if (landlock === 0) return IN_RUNNER_WITHOUT_LANDLOCK;
  const truncate = landlock >= 3 ? 'EACCES' : 'done';
  return { ...IN_RUNNER_WITHOUT_LANDLOCK, ...all(WRITES, 'EACCES'), truncate };
}
