import { mkdir, realpath, rename, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { builtInNames } from '../../../engine/built-in.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import {
  type CommandServer,
  type ConfiguredServer,
  type LocalServer,
  parseServers,
} from '../../../mcp/client/read-servers.ts';
import { type AcceptedTools, acceptedToolsText, parseAcceptedTools } from '../../../mcp/client/tools/accepted-file.ts';
import type { ListedTool } from '../../../mcp/client/tools/listed-tool.ts';
import { type OfferedTool, serverToolDescriptor } from '../../../mcp/client/tools/server-tools.ts';
import type { AcceptedServer, McpServers } from '../../../standalone/team/mcp-tools.ts';
import type { ToolDescriptor } from '../../../tools/contract.ts';
import { contains, readPrivateConfig, realPathOf } from '../../input/private-config.ts';
import type { CliIo } from '../../io.ts';
import { configFolder } from '../../state/config-folder.ts';

/** The folders of a run; absent where there is none. */
interface RunPaths {
  workspace?: string;
  state?: string;
}

const SERVERS = 'mcp.yaml';
const ACCEPTED = 'mcp-tools.json';

/**
 * The servers of `mcp.yaml` in the configuration folder of the user that have accepted tools: no manifest names what this process starts.
 * Throws TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read.
 */
export async function acceptedServers(paths: RunPaths, io: CliIo): Promise<AcceptedServer[]> {
  const accepted = await readAccepted(io);
  const found: AcceptedServer[] = [];
  for (const configured of await configuredServers(io)) {
    const tools = accepted.get(configured.name) ?? [];
    if (tools.length === 0) continue;
    const server = await checked(configured, paths, io);
    found.push({ server, tools, offered: offeredBy(server, tools) });
  }
  assertOwnNames(found.flatMap(({ tools }) => tools));
  return found;
}

/** The accepted tools with their servers, for callers that do not run them. */
export async function acceptedOffers(io: CliIo): Promise<Pick<AcceptedServer, 'server' | 'offered'>[]> {
  const accepted = await readAccepted(io);
  const servers = accepted.size === 0 ? [] : await configuredServers(io);
  return servers.map((server) => ({ server, offered: offeredBy(server, accepted.get(server.name) ?? []) }));
}

/** Descriptors of the accepted tools, for callers that do not run them. */
export async function acceptedDescriptors(io: CliIo): Promise<ToolDescriptor[]> {
  return (await acceptedOffers(io)).flatMap(({ offered }) => offered.map(({ descriptor }) => descriptor));
}

function offeredBy(server: ConfiguredServer, tools: readonly ListedTool[]): OfferedTool[] {
  return tools.map((tool) => ({ tool, descriptor: serverToolDescriptor(tool, server) }));
}

/** The servers with accepted tools, for callers that start none. */
export async function acceptedServerNames(io: CliIo): Promise<{ name: string }[]> {
  const accepted = await readAccepted(io);
  const servers = accepted.size === 0 ? [] : await configuredServers(io);
  return servers.flatMap(({ name }) => ((accepted.get(name) ?? []).length === 0 ? [] : [{ name }]));
}

/** The folders with the programs of servers, which no tool of an agent may open. */
export function serverFolders({ servers }: Pick<McpServers, 'servers'>): string[] {
  return servers.flatMap(({ server }) => ('url' in server ? [] : [server.folder]));
}

/** The servers of `mcp.yaml`; none without the file. */
export async function configuredServers(io: CliIo): Promise<ConfiguredServer[]> {
  const { file, value } = await readPrivateConfig(SERVERS, 'the file of MCP servers', io);
  return value === undefined ? [] : parseServers(file, value);
}

/** The server of this name, with checked folders. Throws TEMPER_NOT_FOUND. */
export async function configuredServer(name: string, io: CliIo): Promise<ConfiguredServer> {
  const all = await configuredServers(io);
  const found = all.find((server) => server.name === name);
  if (found !== undefined) return checked(found, {}, io);
  const known = all.length === 0 ? 'there is none' : `there are ${all.map((server) => server.name).join(', ')}`;
  const file = printable(join(configFolder(io), SERVERS));
  throw new TemperError('TEMPER_NOT_FOUND', `${file} has no server "${printable(name, 80)}"; ${printable(known, 500)}`);
}

export async function readAccepted(io: CliIo): Promise<AcceptedTools> {
  const { file, value } = await readPrivateConfig(ACCEPTED, 'the file of accepted tools', io);
  return value === undefined ? new Map() : parseAcceptedTools(file, value as Json);
}

/** Replaces what was accepted of one server. */
export async function storeAccepted(server: string, tools: readonly ListedTool[], io: CliIo): Promise<void> {
  const all = new Map(await readAccepted(io)).set(server, tools);
  const folder = configFolder(io);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, ACCEPTED);
  await writeFile(`${file}.new`, acceptedToolsText(all), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Throws TEMPER_MANIFEST_INVALID for names of built-in tools, and for two tools of one name: one server could take the calls of another. */
export function assertOwnNames(tools: readonly ListedTool[]): void {
  const taken = new Set(builtInNames());
  for (const { name } of tools) {
    if (taken.has(name))
      throw new TemperError(
        'TEMPER_MANIFEST_INVALID',
        `two tools would be named "${printable(name, 80)}"; give the MCP server another name in ${SERVERS}`,
      );
    taken.add(name);
  }
}

/** The server with real paths, none of which leads to the keys, the state or the workspace of Temper. */
async function checked(server: ConfiguredServer, { workspace, state }: RunPaths, io: CliIo): Promise<ConfiguredServer> {
  if ('url' in server) return server;
  const reals = async (paths: readonly string[]): Promise<string[]> => {
    const found: string[] = [];
    for (const path of paths) found.push(await existing(server, path));
    return found;
  };
  const [folder = ''] = await reals([server.folder]);
  const [read, write] = [await reals(server.read), await reals(server.write)];
  const own = [configFolder(io), ...(state === undefined ? [] : [state])];
  await assertApart(server, [folder, ...read, ...write], own);
  // An agent that writes files in the workspace must not write the program.
  if (workspace !== undefined) await assertApart(server, [folder], [workspace]);
  if ('command' in server) return { ...server, folder, read, write };
  return { ...server, folder, program: join(folder, relative(server.folder, server.program)), read, write };
}

async function existing({ name }: LocalServer | CommandServer, path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined && real !== '/') return real;
  throw invalid(name, `its folder ${printable(path)} does not exist`);
}

async function assertApart(
  { name }: LocalServer | CommandServer,
  folders: readonly string[],
  secret: readonly string[],
): Promise<void> {
  for (const path of secret) {
    const real = await realPathOf(path);
    const shared = folders.find((folder) => contains(folder, real) || contains(real, folder));
    if (shared !== undefined)
      throw invalid(name, `its folder ${printable(shared)} and ${printable(path)} contain one another`);
  }
}

function invalid(name: string, reason: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `MCP server "${name}" of ${SERVERS}: ${reason}`);
}
