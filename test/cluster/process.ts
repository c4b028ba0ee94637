import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** A server that a test started. */
export interface Server {
  readonly name: string;
  readonly child: ChildProcess;
  /** The path of what it writes to standard output and error. */
  readonly log: string;
}

interface Program {
  readonly name: string;
  readonly path: string;
  readonly flags: readonly string[];
}

/** On Linux a server ends with the process that started it, however that ends; elsewhere it outlives one that was killed. */
const BOUND = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL'] : [];

/**
 * Starts a program that writes `<name>.log` in the folder. Nothing of the tester's environment but the PATH reaches it: etcd reads settings
 * from it.
 */
export async function startServer(folder: string, { name, path, flags }: Program): Promise<Server> {
  const log = join(folder, `${name}.log`);
  const file = await open(log, 'a');
  try {
    const [program = path, ...args] = [...BOUND, path, ...flags];
    const env = { PATH: process.env['PATH'] };
    const child = spawn(program, args, { cwd: folder, stdio: ['ignore', file.fd, file.fd], env });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    return { name, child, log };
  } finally {
    await file.close();
  }
}

export function hasEnded({ child }: Server): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Ends it by SIGKILL and waits until it is gone. */
export async function endServer(server: Server): Promise<void> {
  if (hasEnded(server)) return;
  const exit = new Promise((resolve) => server.child.once('exit', resolve));
  server.child.kill('SIGKILL');
  await exit;
}

/** The end of what it has written, for the message of an error. */
export async function lastWords({ log }: Server): Promise<string> {
  return (await readFile(log, 'utf8')).slice(-2000);
}

/** Ports of 127.0.0.1 that nobody listens on. All are held at once, so that they differ; another process may still come first. */
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

/** Whether a port of 127.0.0.1 can be listened on. */
export async function isFree(port: number): Promise<boolean> {
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
