import { resolve } from 'node:path';
import { assertSessionId } from '../../../agent/session/session-id.ts';
import type { LoadedManifests } from '../../../api/manifests.ts';
import type { ExplainCallDeps, ExternalTool } from '../../../engine/explain/types.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isElsewhere } from '../../../mcp/client/read-servers.ts';
import type { PolicyRequest, PolicySnapshot } from '../../../policy/types.ts';
import type { HostToolDeps } from '../../../standalone/team/host-tools.ts';
import type { AcceptedServer } from '../../../standalone/team/mcp-tools.ts';
import { stateKeys } from '../../../standalone/trust/state-key.ts';
import { checkSqlQuery, SQL_QUERY_NAME } from '../../../toolbox/sql/sql-query.ts';
import type { ToolDescriptor } from '../../../tools/contract.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { DEFAULT_STATE } from '../../cluster/options.ts';
import type { CliIo } from '../../io.ts';
import { acceptedOffers } from '../../mcp/servers/configured-servers.ts';
import { type UserPrograms, userPrograms } from '../../run/programs/user-programs.ts';
import { existingFolder, governingFiles } from '../../run/run.ts';
import type { RunOptions } from '../../run/run-options.ts';
import { selectTeam } from '../../run/select-agent.ts';
import { serviceDescriptors } from '../../services/service-tools.ts';
import { configFolder } from '../../state/config-folder.ts';
import { capabilityTools } from './capability-tools.ts';
import { releaseConnections, repositoriesOf } from './release-values.ts';

/** The options of `temper run` that name folders and files, and those of a release. */
export interface RunQuestion
  extends Partial<Pick<RunOptions, 'workspace' | 'state' | 'skills' | 'providers' | 'modelScript' | 'session'>> {
  /** Files with Helm values of the release, for a pod. */
  values?: string[];
}

/** What an explanation needs of a run, or of a pod. The paths are absolute. */
export interface ExplainedRun
  extends Required<Pick<ExplainCallDeps, 'protectedFolders' | 'repositories' | 'external'>> {
  /** Where the agent works. */
  workspace: string;
  /** The state folder; absent for a pod. */
  state?: string;
}

/**
 * With a workspace those of `temper run` with the same options, otherwise those of a pod, for which `services` stand for the tools of
 * services and servers that the platform has. Throws TEMPER_USAGE for a folder that the run would refuse.
 */
export async function explainedRun(
  options: RunQuestion,
  loaded: LoadedManifests,
  { agent, workspace }: Pick<PolicySnapshot, 'agent' | 'workspace'>,
  services: readonly ExternalTool[],
  io: CliIo,
): Promise<ExplainedRun> {
  if (options.workspace === undefined) {
    assertNoRun(options);
    const objects = loaded.objects.map(({ object }) => object);
    const connections = options.values && (await releaseConnections(options.values, io));
    return {
      workspace,
      protectedFolders: [],
      repositories: connections === undefined ? 'Unknown' : repositoriesOf(connections, agent.namespace),
      external: [...services, ...capabilityTools(objects, agent.namespace, connections)],
    };
  }
  if (options.values !== undefined)
    throw new TemperError(
      'TEMPER_USAGE',
      '--values are those of a release, and --workspace is of a run; leave out one',
    );
  if (options.session !== undefined) assertSessionId(options.session);
  const folder = await existingFolder(resolve(io.cwd, options.workspace));
  const state = resolve(io.cwd, options.state ?? DEFAULT_STATE);
  const { agents } = selectTeam(loaded, { agent: agent.name, namespace: agent.namespace });
  const programs = await userPrograms(loaded, agents, { workspace: folder, state, skills: options.skills }, io);
  using _folders = programs.skills.folders;
  const keys = stateKeys(configFolder(io)).folder;
  const repositories = programs.repositories?.({ fetchWith: sendsNothing });
  return {
    workspace: folder,
    state,
    protectedFolders: [state, keys, ...governingFiles(options, loaded, io.cwd, programs)],
    repositories: { owner: 'User', find: (url) => repositories?.find(url) },
    external: toolsOfRun(programs, loaded, agent.namespace),
  };
}

/** The tools of the services and MCP servers of the user. */
export async function toolsOfServices(io: CliIo): Promise<ExternalTool[]> {
  const services = await serviceDescriptors(io);
  const servers = await acceptedOffers(io);
  return [...services.map(serviceTool), ...servers.flatMap(serverTools)];
}

function toolsOfRun(
  { services, mcp, hostTools }: UserPrograms,
  { objects }: LoadedManifests,
  namespace: string,
): ExternalTool[] {
  const hosts = hostTools?.({ decide: asksNothing, schemas: createSchemaCompiler(), fetchWith: sendsNothing }) ?? [];
  const described = capabilityTools(
    objects.map(({ object }) => object),
    namespace,
    undefined,
  );
  const requestsOf = (name: string): readonly PolicyRequest[] =>
    described.find(({ descriptor }) => descriptor.name === name)?.requests ?? [];
  return [
    ...services.map(({ descriptor }) => serviceTool(descriptor)),
    ...mcp.servers.flatMap(serverTools),
    ...hosts.map(({ descriptor }) => ({ descriptor, requests: requestsOf(descriptor.name) })),
  ];
}

function serviceTool(descriptor: ToolDescriptor): ExternalTool {
  return { descriptor, requests: [], ...(descriptor.name === SQL_QUERY_NAME ? { check: checkSqlQuery } : {}) };
}

/** The tools of an MCP server. The policy has to permit the host of one that is elsewhere. */
function serverTools({ server, offered }: Pick<AcceptedServer, 'server' | 'offered'>): ExternalTool[] {
  return offered.map(({ descriptor }) => ({ descriptor, requests: isElsewhere(server) ? [hostOf(server.url)] : [] }));
}

function hostOf(text: string): PolicyRequest {
  const { hostname, port } = new URL(text);
  return { kind: 'Network', host: hostname, port: Number(port) || 443 };
}

const sendsNothing: HostToolDeps['fetchWith'] = () => () =>
  Promise.reject(new TemperError('TEMPER_INTERNAL', 'an explanation sent a request'));

const asksNothing: HostToolDeps['decide'] = () => {
  throw new TemperError('TEMPER_INTERNAL', 'an explanation called a tool');
};

function assertNoRun({ state, skills, providers, modelScript, session }: RunQuestion): void {
  const options = {
    '--state': state,
    '--session': session,
    '--skills': skills,
    '--providers': providers,
    '--model-script': modelScript,
  };
  const named = Object.entries(options).find(([, value]) => value !== undefined);
  if (named !== undefined)
    throw new TemperError('TEMPER_USAGE', `${named[0]} works with --workspace only; add --workspace FOLDER`);
}
