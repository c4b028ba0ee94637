import { realpath } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { AgentProgram } from '../../../acp/process/agent-command.ts';
import { parseAgentPrograms } from '../../../acp/read-agent-programs.ts';
import type { Agent } from '../../../api/v1alpha1/agent.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import type { AgentDefinition } from '../../../standalone/team/member.ts';
import { contains, readPrivateConfig, realPathOf } from '../../input/private-config.ts';
import type { CliIo } from '../../io.ts';
import { configFolder } from '../../state/config-folder.ts';

/** The agents with their programs. Throws what `agentProgram` throws. */
export async function withPrograms(
  agents: readonly AgentDefinition[],
  privatePaths: readonly string[],
  io: CliIo,
): Promise<AgentDefinition[]> {
  const all: AgentDefinition[] = [];
  for (const definition of agents)
    all.push({ ...definition, program: await agentProgram(definition.agent, privatePaths, io) });
  return all;
}

/**
 * The program of an agent with `spec.model.agent`, from `agents.yaml` in the configuration folder of the user: no manifest names what this
 * process starts. Throws TEMPER_ACP_AGENT_NOT_FOUND, TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read. `private` are
 * paths that the program must not be able to read.
 */
async function agentProgram(
  { spec }: Agent,
  privatePaths: readonly string[],
  io: CliIo,
): Promise<AgentProgram | undefined> {
  const name = spec.model.agent;
  if (name === undefined) return undefined;
  const { file, value } = await readPrivateConfig('agents.yaml', 'the file of agent programs', io);
  const programs = value === undefined ? [] : parseAgentPrograms(file, value);
  const found = programs.find((program) => program.name === name);
  if (found === undefined) throw notFound(name, `${file} has no agent of this name`);
  const folder = await realpath(found.folder).catch(() => undefined);
  if (folder === undefined) throw notFound(name, `its folder ${printable(found.folder)} does not exist`);
  for (const path of [configFolder(io), ...privatePaths])
    if (contains(folder, await realPathOf(path)))
      throw notFound(name, `its folder ${printable(found.folder)} contains ${printable(path)}, which it must not read`);
  return { ...found, folder, program: join(folder, relative(found.folder, found.program)) };
}

function notFound(name: string, reason: string): TemperError {
  return new TemperError('TEMPER_ACP_AGENT_NOT_FOUND', `spec.model.agent: "${name}": ${reason}`);
}
