import type { LoadedManifests } from '../../../api/manifests.ts';
import { type AgentDefinition, scopeOf } from '../../../standalone/team/member.ts';
import type { McpServers } from '../../../standalone/team/mcp-tools.ts';
import type { CliIo } from '../../io.ts';
import { withCapabilities } from '../../mcp/servers/capability-tools.ts';
import { acceptedServers } from '../../mcp/servers/configured-servers.ts';
import { withPrograms } from './agent-program.ts';

/** The agents with the programs that the configuration folder of the user names for them. */
export interface UserPrograms {
  agents: readonly AgentDefinition[];
  mcp: McpServers;
}

/** Throws TEMPER_ACP_AGENT_NOT_FOUND, TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read. */
export async function userPrograms(
  { objects }: LoadedManifests,
  agents: readonly AgentDefinition[],
  { workspace, state }: { workspace: string; state: string },
  io: CliIo,
): Promise<UserPrograms> {
  const definitions = await withPrograms(agents, [workspace, state], io);
  const namespaces = new Set(agents.map(({ agent }) => scopeOf({ agent }).namespace));
  const capabilities = objects.flatMap(({ object }) =>
    object.kind === 'Capability' && namespaces.has(object.metadata.namespace ?? 'default') ? [object] : [],
  );
  const { servers, problems } = withCapabilities(await acceptedServers({ workspace, state }, io), capabilities);
  for (const problem of problems) io.error(`note: ${problem}\n`);
  return { agents: definitions, mcp: { servers, token: (variable) => io.environment[variable] } };
}
