import { GRANTABLE_CATEGORIES } from '../api/v1alpha1/actions.ts';
import type { Connection } from '../connections/connection.ts';
import { missingRequirements } from '../discovery/requirements.ts';
import { printable } from '../lib/printable.ts';
import type { BrokeredCapability } from './capability-object.ts';

/** Reasons of the condition `Available`. */
export type UnavailableReason =
  | 'EgressDisabled'
  | 'ConnectionMissing'
  | 'HostNotPermitted'
  | 'CategoryNotAllowed'
  | 'SchemaInvalid'
  | 'NameTaken'
  | 'ToolMissing'
  | 'LimitReached'
  | 'DigestMissing'
  | 'McpServerMissing';

/** What decides about the use of a connection: not its credential. */
export type ConnectionTarget = Pick<Connection, 'name' | 'hosts' | 'namespaces' | 'private'>;

/** An MCP server that the platform runs. */
export interface McpServerTarget {
  readonly name: string;
  readonly url: string;
  /** Whose agents use it. */
  readonly namespaces: readonly string[];
}

/** Why the tool of a Capability cannot be called, with the next step. */
export interface Unavailable {
  readonly reason: UnavailableReason;
  readonly message: string;
}

/** What a Capability can be executed with. */
export interface CapabilityContext<C extends ConnectionTarget = Connection> {
  readonly connections: readonly C[];
  readonly mcpServers: readonly McpServerTarget[];
  /** The gateway reaches hosts through the egress proxy only. */
  readonly hasEgress: boolean;
  /** Names of tools that agents have already. */
  readonly taken: ReadonlySet<string>;
  /** Why a schema of the tool cannot be used. */
  schemaProblem(capability: BrokeredCapability): string | undefined;
  /** Whether a tool of this name exists in the namespace. */
  hasTool(name: string): boolean;
}

/** The backend and the connection that executes its calls. */
export interface UsableCapability<C extends ConnectionTarget = Connection> {
  readonly url: URL;
  readonly connection: C | undefined;
  /** The name of the MCP server that the platform runs at the URL. */
  readonly server?: string;
}

/** The facts alone decide: no host is asked. */
export function assessCapability<C extends ConnectionTarget>(
  capability: BrokeredCapability,
  context: CapabilityContext<C>,
): UsableCapability<C> | Unavailable {
  const { tool, spec, namespace, backend } = capability;
  const server = backend.mcp?.server;
  if (!context.hasEgress && server === undefined)
    return unavailable('EgressDisabled', 'the gateway reaches hosts through the egress proxy; set egress.enabled');
  // A grant of another kind opens their tools at every level.
  if (GRANTABLE_CATEGORIES.has(tool.category))
    return unavailable('CategoryNotAllowed', `spec.tool.category is ${tool.category}; use another category`);
  if (context.taken.has(tool.name))
    return unavailable('NameTaken', `another tool is named "${tool.name}"; give spec.tool.name another value`);
  const problem = context.schemaProblem(capability);
  if (problem !== undefined) return unavailable('SchemaInvalid', `spec.tool: ${problem}`);
  const missing = missingRequirement(spec, namespace, context) ?? missingDigest(backend);
  if (missing !== undefined) return missing;
  if (server !== undefined) return platformServer(server, namespace, context.mcpServers);
  return connectedHost(capability, context);
}

/** The host of the backend, with the connection that it names. */
export function connectedHost<C extends ConnectionTarget>(
  { backend, namespace }: Pick<BrokeredCapability, 'backend' | 'namespace'>,
  context: Pick<CapabilityContext<C>, 'connections'>,
): UsableCapability<C> | Unavailable {
  const { url, connection: name } = endpointOf(backend);
  if (url === null) return unavailable('HostNotPermitted', 'the url of spec.backend is not a URL');
  if (name === undefined) return { url, connection: undefined };
  const connection = connectionOf(name, namespace, context.connections);
  if (connection === undefined) return missingConnection(name, namespace);
  const host = hostOf(url);
  if (connection.private === true)
    return unavailable('HostNotPermitted', `connection "${name}" is for a private network, which egress never reaches`);
  if (!connection.hosts.includes(host))
    return unavailable(
      'HostNotPermitted',
      `connection "${name}" does not name ${printable(host, 300)}; correct the url, or ask the platform team`,
    );
  return { url, connection };
}

function endpointOf({ http, mcp, a2a }: BrokeredCapability['backend']): {
  url: URL | null;
  connection: string | undefined;
} {
  const { url = '', connection } = http ?? mcp ?? a2a ?? {};
  return { url: URL.parse(url), connection };
}

/** `host:port` in the form of a Connection. */
function hostOf({ hostname, port }: URL): string {
  return `${hostname}:${port === '' ? '443' : port}`;
}

/** The first thing that the capability requires and the namespace does not have. */
export function missingRequirement(
  { requiredSecrets = [], requiredTools = [] }: Pick<BrokeredCapability['spec'], 'requiredSecrets' | 'requiredTools'>,
  namespace: string,
  context: Pick<CapabilityContext<ConnectionTarget>, 'connections' | 'hasTool'>,
): Unavailable | undefined {
  const required = { connections: requiredSecrets, tools: requiredTools };
  const missing = missingRequirements(required, {
    hasConnection: (name) => hasConnection(name, namespace, context.connections),
    hasTool: (name) => context.hasTool(name),
  });
  const [connection] = missing.connections;
  if (connection !== undefined) return missingConnection(connection, namespace);
  const [tool] = missing.tools;
  if (tool === undefined) return undefined;
  return unavailable(
    'ToolMissing',
    `the namespace has no tool "${printable(tool, 80)}", which spec.requiredTools names`,
  );
}

/** Without it, nothing says which tool of the server is meant. */
function missingDigest({ mcp }: BrokeredCapability['backend']): Unavailable | undefined {
  if (mcp === undefined || mcp.digest !== undefined) return undefined;
  return unavailable('DigestMissing', 'spec.backend.mcp.digest is missing; temper mcp manifest prints it');
}

/** The same for an unknown name and for one that the namespace may not use. */
function platformServer(
  name: string,
  namespace: string,
  servers: readonly McpServerTarget[],
): UsableCapability<never> | Unavailable {
  const found = servers.find((one) => one.name === name && one.namespaces.includes(namespace));
  if (found !== undefined) return { url: new URL(found.url), connection: undefined, server: name };
  const message = `no MCP server "${name}" of the platform is for namespace "${namespace}"; ask the platform team to add it to mcpServers`;
  return unavailable('McpServerMissing', message);
}

/** The same for an unknown name and for one that the namespace may not use, so that a tenant cannot find out which exist. */
function missingConnection(name: string, namespace: string): Unavailable {
  const message = `no connection "${name}" is configured for namespace "${namespace}"; ask the platform team to add the namespace to it`;
  return unavailable('ConnectionMissing', message);
}

/** Whether the namespace has the connection. */
export function hasConnection(name: string, namespace: string, connections: readonly ConnectionTarget[]): boolean {
  return connectionOf(name, namespace, connections) !== undefined;
}

function connectionOf<C extends ConnectionTarget>(
  name: string,
  namespace: string,
  connections: readonly C[],
): C | undefined {
  return connections.find((one) => one.name === name && one.namespaces.includes(namespace));
}

function unavailable(reason: UnavailableReason, message: string): Unavailable {
  return { reason, message };
}
