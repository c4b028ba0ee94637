import { ConfinedProcess } from '../../../sandbox/confined/confined-process.ts';
import { filePreload } from '../../../sandbox/confined/file-preload.ts';
import type { PipedProcess } from '../../../sandbox/confined/piped-process.ts';
import { ProgramHome } from '../../../sandbox/confined/program-home.ts';
import { LaunchedProcess } from '../../../sandbox/terminal/launched-process.ts';
import { executableFiles, requireProgram } from '../../../sandbox/terminal/program-files.ts';
import { programEnvironment, requireLauncher } from '../../../sandbox/terminal/program-runner.ts';
import type { CommandServer, LocalServer } from '../read-servers.ts';

const CLOSE_REASON = 'the connection is closed';
/** MiB of the program and of everything that it starts. */
const MEMORY_MIB = 1_024;

/** Starts the process of one connection to a server in a home of its own, with no variable of the environment of this process. */
export async function startServerProcess(server: LocalServer): Promise<PipedProcess> {
  const home = await ProgramHome.create();
  return new ConfinedProcess(server, {
    home,
    confinement: { read: server.read, write: server.write, preloads: [await filePreload()] },
    folder: home.workspace,
    environment: { ...server.environment, HOME: home.path, TMPDIR: home.path },
    closeReason: CLOSE_REASON,
  });
}

/** The same for a program of the system. Throws TEMPER_PROGRAM_UNAVAILABLE without a launcher, and TEMPER_PROGRAM_NOT_FOUND. */
export async function startServerCommand(server: CommandServer, launcher: string | undefined): Promise<PipedProcess> {
  const { command, programs, folder, read, write } = server;
  const program = { launcher: requireLauncher(launcher), file: await requireProgram(command), name: command };
  const executable = await executableFiles([command, ...programs]);
  const home = await ProgramHome.create();
  return new LaunchedProcess(
    { ...program, args: server.arguments },
    { readable: [folder, ...read], writable: [home.path, ...write], executable, memoryMebibytes: MEMORY_MIB },
    {
      home,
      folder: home.workspace,
      environment: { ...programEnvironment(home.path, home.workspace), ...server.environment },
      closeReason: CLOSE_REASON,
    },
  );
}
