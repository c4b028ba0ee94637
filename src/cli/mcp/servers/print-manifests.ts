import type { Capability } from '../../../api/v1alpha1/capability.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type ConfiguredServer, isElsewhere } from '../../../mcp/client/read-servers.ts';
import { type ListedTool, pinnedDigest } from '../../../mcp/client/tools/listed-tool.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { toJsonText, toYamlText } from '../../objects/data-format.ts';
import { environmentRedactor, redactingIo } from '../../run/redact.ts';
import { configuredServer, readAccepted } from './configured-servers.ts';

export interface PrintedManifestOptions {
  server: string;
  /** Only these tools; all accepted ones when absent. */
  tool?: readonly string[];
  /** The connection of the gateway with the credential of the server. */
  connection?: string;
  namespace?: string;
  output: 'yaml' | 'json';
}

/** A Capability has no longer description. */
const MAX_DESCRIPTION = 2_048;
const TOOL_NAME = /^[a-z][a-z0-9_-]{0,62}$/;

/**
 * Prints accepted tools of a server as Capabilities for a cluster, each with the digest of what its user read. Asks no server. Throws
 * TEMPER_NOT_FOUND and TEMPER_MANIFEST_INVALID.
 */
export async function printManifests(options: PrintedManifestOptions, outer: CliIo): Promise<number> {
  const io = redactingIo(outer, environmentRedactor(outer.environment));
  const server = await configuredServer(options.server, io);
  const { name } = server;
  if ('url' in server && !isElsewhere(server))
    throw new TemperError(
      'TEMPER_MANIFEST_INVALID',
      `MCP server "${name}" has no https URL in mcp.yaml, so no gateway of a cluster can reach it`,
    );
  if (!('url' in server) && options.connection !== undefined)
    throw new TemperError(
      'TEMPER_USAGE',
      `--connection is for servers with a url; on a cluster, the platform runs MCP server "${server.name}" without a credential`,
    );
  const accepted = (await readAccepted(io)).get(server.name) ?? [];
  const tools =
    options.tool === undefined ? accepted : options.tool.map((name) => acceptedTool(name, server, accepted));
  if (tools.length === 0) throw notAccepted(`no tool of MCP server "${server.name}" is accepted`, server);
  const objects = tools.map((tool) => capabilityOf(tool, server, options));
  for (const { name, description } of tools)
    if (description.length > MAX_DESCRIPTION)
      io.error(`the description of ${name} is cut to ${MAX_DESCRIPTION} characters, the most that a Capability has\n`);
  io.out(options.output === 'yaml' ? yamlOf(objects) : toJsonText({ apiVersion: 'v1', kind: 'List', items: objects }));
  return EXIT.ok;
}

function acceptedTool(name: string, server: ConfiguredServer, accepted: readonly ListedTool[]): ListedTool {
  const found = accepted.find((tool) => tool.name === name);
  if (found !== undefined) return found;
  throw notAccepted(`tool "${printable(name, 80)}" of MCP server "${server.name}" is not accepted`, server);
}

function notAccepted(problem: string, { name }: ConfiguredServer): TemperError {
  return new TemperError('TEMPER_NOT_FOUND', `${problem}; read it with temper mcp tools ${name}, and accept it`);
}

function capabilityOf(tool: ListedTool, server: ConfiguredServer, options: PrintedManifestOptions): Json {
  const { name, remoteName, description, inputSchema, outputSchema, action, sideEffects } = tool;
  const { connection, namespace } = options;
  if (!TOOL_NAME.test(name))
    throw new TemperError(
      'TEMPER_MANIFEST_INVALID',
      `"${printable(name, 80)}" is not the name of a tool of a Capability; give the server a name in mcp.yaml that begins with a letter`,
    );
  const spec: Capability['spec'] = {
    type: 'Tool',
    description: description === '' ? `The tool ${printable(remoteName, 128)} of an MCP server.` : cut(description),
    hasSideEffects: sideEffects,
    tool: {
      name,
      category: server.category,
      action,
      inputSchema,
      ...(outputSchema === undefined ? {} : { outputSchema }),
    },
    backend: {
      mcp: {
        ...('url' in server ? { url: server.url } : { server: server.name }),
        tool: remoteName,
        ...(connection === undefined ? {} : { connection }),
        digest: pinnedDigest(tool),
      },
    },
  };
  const metadata = { name: objectNameOf(name), ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata, spec: spec as unknown as Json };
}

function cut(description: string): string {
  return description.length > MAX_DESCRIPTION ? `${description.slice(0, MAX_DESCRIPTION - 1)}…` : description;
}

/** Names of objects have no underscore, and end with a letter or a digit. */
function objectNameOf(name: string): string {
  return name.replaceAll('_', '-').replace(/-+$/, '');
}

function yamlOf(objects: readonly Json[]): string {
  return objects.map(toYamlText).join('---\n');
}
