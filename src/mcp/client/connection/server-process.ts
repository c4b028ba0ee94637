import { ConfinedProcess } from '../../../sandbox/confined/confined-process.ts';
import { filePreload } from '../../../sandbox/confined/file-preload.ts';
import { ProgramHome } from '../../../sandbox/confined/program-home.ts';
import type { LocalServer } from '../read-servers.ts';

/** Starts the process of one connection to a server in a home of its own, with no variable of the environment of this process. */
export async function startServerProcess(server: LocalServer): Promise<ConfinedProcess> {
  const home = await ProgramHome.create();
  return new ConfinedProcess(server, {
    home,
    confinement: { read: server.read, write: server.write, preloads: [await filePreload()] },
    folder: home.workspace,
    environment: { ...server.environment, HOME: home.path, TMPDIR: home.path },
    closeReason: 'the connection is closed',
  });
}
