import { join } from 'node:path';
import { assertKnownMembers, invalidMember, requiredText, textList } from '../../lib/config/config-members.ts';
import { isJsonObject, type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { PipedProcess } from '../../sandbox/confined/piped-process.ts';
import { ProgramHome } from '../../sandbox/confined/program-home.ts';
import { readEnvironment, readFolder } from '../../sandbox/confined/read-program.ts';
import { LaunchedProcess } from '../../sandbox/terminal/launched-process.ts';
import { executableFiles, isProgramName, requireProgram } from '../../sandbox/terminal/program-files.ts';
import { programEnvironment, requireLauncher } from '../../sandbox/terminal/program-runner.ts';

/** The MCP server of an image, which talks over its standard input and output. */
export interface BridgeProgram {
  /** The name of a program in a folder of the system. */
  command: string;
  arguments: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Absolute path of a folder that it may read, and whose programs it may start. */
  folder?: string;
}

export interface BridgeProgramDeps {
  launcher: string | undefined;
  /** Absolute path of a folder with a folder for the home of each session, named by its number. */
  homes: string;
  /** MiB of one session. */
  memoryMebibytes: number;
}

const OPTION = 'the option --program';
const FIELD = 'the value';
/** Stands for the home of the session in arguments and in values of variables. */
const HOME = '$(HOME)';

/** Parses `{command, arguments, environment, folder}`. Throws TEMPER_MANIFEST_INVALID. */
export function parseBridgeProgram(text: string): BridgeProgram {
  const value = jsonIn(text);
  if (!isJsonObject(value)) throw invalidMember(OPTION, FIELD, 'must be a JSON object');
  assertKnownMembers(OPTION, `${FIELD}.`, value, ['command', 'arguments', 'environment', 'folder']);
  const command = requiredText(OPTION, `${FIELD}.command`, value['command']);
  if (!isProgramName(command))
    throw invalidMember(OPTION, `${FIELD}.command`, 'must be the name of a program of the system, without a folder');
  const { folder } = value;
  return {
    command,
    arguments: textList(OPTION, `${FIELD}.arguments`, value['arguments'] ?? []),
    environment: readEnvironment(OPTION, `${FIELD}.environment`, value['environment'] ?? {}),
    ...(folder === undefined ? {} : { folder: readFolder(OPTION, `${FIELD}.folder`, folder) }),
  };
}

function jsonIn(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}

/** Starts the process of one session, with a home of its own. Throws TEMPER_PROGRAM_UNAVAILABLE and TEMPER_PROGRAM_NOT_FOUND. */
export async function startBridgeProgram(
  program: BridgeProgram,
  number: number,
  { launcher, homes, memoryMebibytes }: BridgeProgramDeps,
): Promise<PipedProcess> {
  const { command, folder } = program;
  const launched = { launcher: requireLauncher(launcher), file: await requireProgram(command), name: command };
  const folders = folder === undefined ? [] : [folder];
  // The platform chose the image by its digest, so the server may start each program of it.
  const executable = [...(await executableFiles('any')), ...folders];
  const home = await ProgramHome.create(join(homes, String(number)));
  const inHome = (text: string): string => text.replaceAll(HOME, home.workspace);
  const environment = Object.fromEntries(
    Object.entries(program.environment).map(([name, text]) => [name, inHome(text)]),
  );
  return new LaunchedProcess(
    { ...launched, args: program.arguments.map(inHome) },
    { readable: folders, writable: [home.path], executable, memoryMebibytes },
    {
      home,
      folder: home.workspace,
      environment: { ...programEnvironment(home.path, home.workspace), ...environment },
      closeReason: 'the session is closed',
    },
  );
}
