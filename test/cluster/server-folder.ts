import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logTail, killServer, type Program, type Server, startServer } from './process.ts';

/** A temporary folder with one server. Disposing kills the server and removes the folder; so does the end of the test's process, but for the folder. */
export interface ServerFolder extends AsyncDisposable {
  readonly path: string;
  /** Undefined before the first start. */
  readonly server: () => Server | undefined;
  /** Kills a server that runs, and starts one. */
  readonly start: (program: Program) => Promise<Server>;
  /** Kills the server with SIGKILL, like a crash. The folder stays. */
  readonly kill: () => Promise<void>;
  /** The end of the log, for error messages. Empty before the first start. */
  readonly logTail: () => Promise<string>;
}

export async function openServerFolder(name: string): Promise<ServerFolder> {
  const path = await mkdtemp(join(tmpdir(), `temper-${name}-`));
  let server: Server | undefined;
  const onExit = () => void server?.child.kill('SIGKILL');
  process.once('exit', onExit);
  const kill = async () => {
    if (server !== undefined) await killServer(server);
  };
  return {
    path,
    server: () => server,
    async start(program) {
      await kill();
      server = await startServer(path, program);
      return server;
    },
    kill,
    logTail: async () => (server === undefined ? '' : logTail(server)),
    async [Symbol.asyncDispose]() {
      process.removeListener('exit', onExit);
      await kill();
      await rm(path, { recursive: true, force: true });
    },
  };
}
