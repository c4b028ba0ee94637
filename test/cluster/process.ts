import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** A server that a test started. */
export interface Server {
  readonly name: string;
  readonly child: ChildProcess;
  /** The path of the file with its stdout and stderr. */
  readonly log: string;
}

export interface Program {
  readonly name: string;
  readonly path: string;
  readonly flags: readonly string[];
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** The signal that the server gets when the process that started it ends, however that ends. By default KILL. */
  readonly deathSignal?: 'KILL' | 'TERM';
}

/** Only on Linux. Elsewhere a server outlives a killed parent. */
const deathSignalCommand = (signal: string) => (process.platform === 'linux' ? ['setpriv', '--pdeathsig', signal] : []);

/**
 * Starts a program that writes `<name>.log` in the folder. It gets only PATH and GOGC from the environment, because etcd reads settings
 * from environment variables.
 */
export async function startServer(folder: string, launched: Program): Promise<Server> {
  const { name, path, flags, env: added = {}, deathSignal = 'KILL' } = launched;
  const log = join(folder, `${name}.log`);
  const file = await open(log, 'a');
  try {
    const [program = path, ...args] = [...deathSignalCommand(deathSignal), path, ...flags];
    const { PATH, GOGC } = process.env;
    const child = spawn(program, args, {
      cwd: folder,
      stdio: ['ignore', file.fd, file.fd],
      env: { PATH, GOGC, ...added },
    });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    return { name, child, log };
  } finally {
    await file.close();
  }
}

export function hasExited({ child }: Server): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Kills the server with SIGKILL and waits until it has exited. */
export async function killServer(server: Server): Promise<void> {
  if (hasExited(server)) return;
  const exit = new Promise((resolve) => server.child.once('exit', resolve));
  server.child.kill('SIGKILL');
  await exit;
}

/** The last 2,000 characters of the log, for error messages. */
export async function logTail({ log }: Server): Promise<string> {
  return (await readFile(log, 'utf8')).slice(-2000);
}

/** Free ports of 127.0.0.1, all different. Another process may still take one before the caller listens on it. */
export async function freePorts<const Names extends readonly string[]>(
  ...names: Names
): Promise<Record<Names[number], number>> {
  const servers = names.map(() => createServer());
  const ports = await Promise.all(
    servers.map(async (server) => {
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
      return (server.address() as { port: number }).port;
    }),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return Object.fromEntries(names.map((name, index) => [name, ports[index]])) as Record<Names[number], number>;
}

/** Whether a port of 127.0.0.1 is free. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  await new Promise((resolve) => server.close(resolve));
  return true;
}
