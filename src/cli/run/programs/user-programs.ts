import type { LoadedManifests } from '../../../api/manifests.ts';
import type { Capability } from '../../../api/v1alpha1/capability.ts';
import type { LocalPrograms } from '../../../standalone/team/local-terminal.ts';
import { type AgentDefinition, scopeOf } from '../../../standalone/team/member.ts';
import type { McpServers } from '../../../standalone/team/mcp-tools.ts';
import type { HostTools, RepositoriesOf } from '../../../standalone/team/host-tools.ts';
import type { Tool } from '../../../tools/contract.ts';
import type { CliIo } from '../../io.ts';
import { gitRepositories } from '../../connections/git-repositories.ts';
import { hasHost, hostCapabilities, type RunTools } from '../../connections/host-capabilities.ts';
import type { TokenOf } from '../../connections/reach-host.ts';
import { connectionNames, userConnections } from '../../connections/user-connections.ts';
import { withCapabilities } from '../../mcp/servers/capability-tools.ts';
import { acceptedServers } from '../../mcp/servers/configured-servers.ts';
import type { LocalCapabilities } from '../../../standalone/discovery/local-catalog.ts';
import { missingServices, serviceTools } from '../../services/service-tools.ts';
import { withPrograms } from './agent-program.ts';
import { userLauncher } from './user-launcher.ts';
import { type UserSkills, userSkills } from './user-skills.ts';

/** The agents with the programs that the configuration folder of the user names for them, and the skills of the run. */
export interface UserPrograms {
  agents: readonly AgentDefinition[];
  mcp: McpServers;
  programs: LocalPrograms;
  capabilities: LocalCapabilities | undefined;
  /** The names of the connections and of the MCP servers of the user. */
  connections: ReadonlySet<string>;
  skills: UserSkills;
  /** The tools of the services of the user: a search service, databases. */
  services: readonly Tool[];
  /** The tools of Capabilities with `backend.http` or `backend.a2a`. */
  hostTools: HostTools | undefined;
  /** Repositories elsewhere that a connection names. */
  repositories: RepositoriesOf | undefined;
}

/** Throws TEMPER_ACP_AGENT_NOT_FOUND, TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read. */
export async function userPrograms(
  { objects }: LoadedManifests,
  agents: readonly AgentDefinition[],
  {
    workspace,
    state,
    skills: named = [],
  }: { workspace: string; state: string; skills?: readonly string[] | undefined },
  io: CliIo,
): Promise<UserPrograms> {
  const definitions = await withPrograms(agents, [workspace, state], io);
  const namespaces = new Set(agents.map(({ agent }) => scopeOf({ agent }).namespace));
  const capabilities = objects.flatMap(({ object }) =>
    object.kind === 'Capability' && namespaces.has(object.metadata.namespace ?? 'default') ? [object] : [],
  );
  const { servers, problems } = withCapabilities(await acceptedServers({ workspace, state }, io), capabilities);
  for (const problem of problems) io.error(`note: ${problem}\n`);
  const skills = await userSkills(named, capabilities, workspace, io);
  const services = await serviceTools(io);
  for (const missing of missingServices(agents, services)) io.error(`note: ${missing}\n`);
  const connections = await userConnections(io);
  const token: TokenOf = (variable) => io.environment[variable];
  const launcher = userLauncher();
  const offered = servers.flatMap((server) => server.offered.map(({ descriptor }) => descriptor.name));
  return {
    agents: definitions,
    mcp: { servers, token, launcher },
    programs: { launcher, environment: io.environment },
    services,
    hostTools: hostToolsOf(
      capabilities,
      { connections, token, others: new Set([...offered, ...services.map(({ descriptor }) => descriptor.name)]) },
      io,
    ),
    repositories: gitRepositories(connections, token),
    skills,
    capabilities: skills.capabilities,
    connections: connectionNames(
      connections,
      servers.map(({ server }) => server),
    ),
  };
}

/** Undefined without such a Capability. */
function hostToolsOf(capabilities: readonly Capability[], tools: RunTools, io: CliIo): HostTools | undefined {
  if (!capabilities.some(hasHost)) return undefined;
  const { tools: hostTools, problems } = hostCapabilities(capabilities, tools);
  for (const problem of problems) io.error(`note: ${problem}\n`);
  return hostTools;
}
