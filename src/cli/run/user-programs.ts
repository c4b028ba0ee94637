import type { AgentDefinition } from '../../standalone/team/member.ts';
import type { McpServers } from '../../standalone/team/mcp-tools.ts';
import type { CliIo } from '../io.ts';
import { acceptedServers } from '../mcp/servers/configured-servers.ts';
import { withPrograms } from './agent-program.ts';

/** The agents with the programs that the configuration folder of the user names for them. */
export interface UserPrograms {
  agents: readonly AgentDefinition[];
  mcp: McpServers;
}

/** Throws TEMPER_ACP_AGENT_NOT_FOUND, TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read. */
export async function userPrograms(
  agents: readonly AgentDefinition[],
  { workspace, state }: { workspace: string; state: string },
  io: CliIo,
): Promise<UserPrograms> {
  return {
    agents: await withPrograms(agents, [workspace, state], io),
    mcp: {
      servers: await acceptedServers({ workspace, state }, io),
      token: (variable) => io.environment[variable],
    },
  };
}
