import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ProgramHome } from '../confined/program-home.ts';
import { confinedArguments } from './confined-arguments.ts';
import type { ProgramRunner } from './port.ts';
import { executableFiles, PROGRAM_FOLDERS, requireProgram } from './program-files.ts';
import { runProgramProcess } from './program-process.ts';

export interface ProgramRunnerOptions {
  clock: Clock;
  /** The launcher; absent where there is none. */
  launcher: string | undefined;
  /** Absolute paths that no program may reach. */
  protectedPaths?: readonly string[];
  /** MiB of all processes of a program together. */
  memoryMebibytes?: number;
}

const MEMORY_MIB = 1_024;

/** The launcher beside Node, as in the images of Temper, or else the first of these that exists. */
export function findLauncher(candidates: readonly string[] = [], node: string = process.execPath): string | undefined {
  return [join(dirname(node), 'temper-launcher'), ...candidates].find((path) => existsSync(path));
}

/** Runs programs behind the launcher. There is no other way to run one. */
export function createProgramRunner(options: ProgramRunnerOptions): ProgramRunner {
  const { clock, launcher, protectedPaths = [], memoryMebibytes = MEMORY_MIB } = options;
  return {
    async run(request, op) {
      const command = requireLauncher(launcher);
      const { program: name, args, workspace, folder, input, milliseconds } = request;
      await assertNothingProtected(workspace, protectedPaths);
      const file = await requireProgram(name);
      await using home = await ProgramHome.create();
      const environment = { ...programEnvironment(home.path, workspace), ...request.environment };
      const executable = await executableFiles(request.programs);
      const files = { writable: [workspace, home.path], executable, memoryMebibytes };
      const argv = confinedArguments({ file, name, args }, files);
      return await runProgramProcess({ command, args: argv, folder, environment, input, milliseconds }, clock, op);
    },
  };
}

/** The environment of every program: nothing of that of this process. */
export function programEnvironment(home: string, workspace: string): Record<string, string> {
  return {
    PATH: PROGRAM_FOLDERS.join(':'),
    HOME: home,
    TMPDIR: home,
    USER: 'agent',
    LOGNAME: 'agent',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    // Node ends when it may not read the file of the system.
    OPENSSL_CONF: '/dev/null',
    // Git gives up when it may not read the files of the system, and looks for repositories in the folders above.
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: dirname(workspace),
  };
}

/** Throws TEMPER_PROGRAM_UNAVAILABLE. */
export function requireLauncher(launcher: string | undefined): string {
  if (launcher !== undefined) return launcher;
  throw new TemperError(
    'TEMPER_PROGRAM_UNAVAILABLE',
    'programs run behind the launcher of Temper only, and it is not here; on Linux `make launcher` builds it',
  );
}

/** Landlock grants folders and takes nothing out of them. */
async function assertNothingProtected(workspace: string, protectedPaths: readonly string[]): Promise<void> {
  const real = await Promise.all(protectedPaths.map((path) => realpath(path).catch(() => path)));
  const inside = real.find(
    (path) => path === workspace || path.startsWith(`${workspace}/`) || workspace.startsWith(`${path}/`),
  );
  if (inside === undefined) return;
  throw new TemperError(
    'TEMPER_PROGRAM_UNAVAILABLE',
    'the workspace contains files that govern the agent (its state or its manifests), and a program could change them; choose another folder with --workspace',
  );
}
