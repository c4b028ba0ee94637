import { lstat, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { parse } from 'yaml';
import type { AgentProgram } from '../../acp/process/agent-command.ts';
import { parseAgentPrograms } from '../../acp/read-agent-programs.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { readInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';
import { configFolder } from '../state/config-folder.ts';

/** Write permission of the group and of others. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * The program of an agent with `spec.model.agent`, from `agents.yaml` in the configuration folder of the user: no manifest names what this
 * process starts. Throws TEMPER_ACP_AGENT_NOT_FOUND, TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read. `private` are
 * paths that the program must not be able to read.
 */
export async function agentProgram(
  { spec }: Agent,
  privatePaths: readonly string[],
  io: CliIo,
): Promise<AgentProgram | undefined> {
  const name = spec.model.agent;
  if (name === undefined) return undefined;
  const file = join(configFolder(io), 'agents.yaml');
  const found = (await readPrograms(file, io)).find((program) => program.name === name);
  if (found === undefined) throw notFound(name, `${printable(file)} has no agent of this name`);
  const folder = await realpath(found.folder).catch(() => undefined);
  if (folder === undefined) throw notFound(name, `its folder ${printable(found.folder)} does not exist`);
  for (const path of [configFolder(io), ...privatePaths])
    if (contains(folder, await realpath(path).catch(() => path)))
      throw notFound(name, `its folder ${printable(found.folder)} contains ${printable(path)}, which it must not read`);
  return { ...found, folder, program: join(folder, relative(found.folder, found.program)) };
}

async function readPrograms(file: string, io: CliIo): Promise<AgentProgram[]> {
  const info = await lstat(file).catch(() => undefined);
  if (info === undefined) return [];
  if (!info.isFile() || (info.mode & WRITABLE_BY_OTHERS) !== 0)
    throw new TemperError(
      'TEMPER_MANIFEST_INVALID',
      `${printable(file)} names programs that Temper starts, so it must be a file that only its user can write; chmod go-w it`,
    );
  const text = await readInputFile(file, 'the file of agent programs', io);
  try {
    return parseAgentPrograms(printable(file), parse(text, { maxAliasCount: 20 }));
  } catch (error) {
    if (error instanceof TemperError) throw error;
    throw new TemperError('TEMPER_MANIFEST_INVALID', `${printable(file)}: ${printable(messageOf(error, 300))}`, {
      cause: error,
    });
  }
}

function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}${sep}`);
}

function notFound(name: string, reason: string): TemperError {
  return new TemperError('TEMPER_ACP_AGENT_NOT_FOUND', `spec.model.agent: "${name}": ${reason}`);
}
