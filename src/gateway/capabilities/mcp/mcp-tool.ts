import type { CapabilitySpec } from '../../../api/v1alpha1/capability.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { outputOf } from '../../../mcp/client/tools/call-output.ts';
import { type ListedTool, pinnedDigest, type ToolsOfServer } from '../../../mcp/client/tools/listed-tool.ts';
import type { CallingMessage } from '../../brokered/port.ts';
import type { GatewaySession, GatewaySessionDeps } from './gateway-session.ts';
import type { ServerEndpoint } from '../server-requests.ts';
import type { SessionPool } from './session-pool.ts';

type McpBackend = NonNullable<NonNullable<CapabilitySpec['backend']>['mcp']>;

/** A Capability whose tool an MCP server executes. */
export interface McpTool extends ServerEndpoint {
  /** The name that agents call. */
  readonly name: string;
  readonly backend: McpBackend;
}

export interface McpCallDeps extends GatewaySessionDeps {
  readonly sessions: Pick<SessionPool<GatewaySession>, 'during'>;
}

/**
 * Calls the tool in the MCP session of the session of the agent, when the server describes it as the Capability pins it. Throws
 * TEMPER_MCP_TOOL_CHANGED when it does not, TEMPER_TOOL_FAILED for an error of the tool, TEMPER_TOOL_OUTPUT_INVALID for an answer with the
 * credential, TEMPER_RATE_LIMITED, TEMPER_MCP_SERVER_FAILED, TEMPER_CONNECTION_*, TEMPER_FETCH_* and the errors of egress.
 */
export function callMcpTool(
  tool: McpTool,
  input: JsonObject,
  message: CallingMessage,
  { sessions, ...deps }: McpCallDeps,
  op: CallOptions,
): Promise<Json> {
  const { name, url, connection } = tool;
  const server = `${url.href} ${connection?.name ?? ''}`;
  return sessions.during(
    message.claims,
    server,
    async (signal) => {
      const client = await loadMcpClient();
      return client.open(tool, message, deps, { ...op, signal, deadline: Number.POSITIVE_INFINITY });
    },
    async (session) => {
      session.use(message);
      const pinned = pinnedTool(tool, await session.tools(op));
      return outputOf(name, await session.call(pinned, input, op));
    },
    op,
  );
}

/** The client is large, and most gateways need none: it is loaded for the first tool, before a call waits for it. */
export async function loadMcpClient(): Promise<Pick<typeof GatewaySession, 'open'>> {
  return (await import('./gateway-session.ts')).GatewaySession;
}

/** The tool as the server lists it now. The list is compared before each call, because the server may have announced a change. */
function pinnedTool({ name, backend, url }: McpTool, { tools, refused }: ToolsOfServer): ListedTool {
  const { tool: remoteName = name, digest } = backend;
  const listed = tools.find((one) => one.remoteName === remoteName);
  if (listed !== undefined && pinnedDigest(listed) === digest) return listed;
  const unusable = refused.find((one) => one.remoteName === remoteName);
  const what =
    listed === undefined
      ? `${printable(url.host, 260)} does not list it any more${unusable === undefined ? '' : ` as a tool that can be used (${printable(unusable.reason, 300)})`}`
      : `${printable(url.host, 260)} describes it differently now, with digest ${pinnedDigest(listed)}`;
  throw new TemperError(
    'TEMPER_MCP_TOOL_CHANGED',
    `"${name}" is not the tool that its Capability pins: ${what}. Its team can look at it with temper mcp manifest, and set spec.backend.mcp.digest to what they accept`,
  );
}
