import type { EnginePorts, ExternalToolDeps } from '../../engine/ports.ts';
import type { Clock } from '../../lib/clock.ts';
import { type ConfiguredServer, isElsewhere } from '../../mcp/client/read-servers.ts';
import type { OpenServerDeps } from '../../mcp/client/connection/open-server.ts';
import type { ListedTool } from '../../mcp/client/tools/listed-tool.ts';
import type { OfferedTool } from '../../mcp/client/tools/server-tools.ts';
import { PRIVATE_NETWORK_RULE } from '../../policy/private-data/sources.ts';
import type { Decision } from '../../policy/types.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { CallerContext } from '../../tools/contract.ts';

/** An MCP server, and what a user accepted of it. */
export interface AcceptedServer {
  server: ConfiguredServer;
  tools: readonly ListedTool[];
  /** Those tools, and the Capability objects that stand for them. */
  offered: readonly OfferedTool[];
}

/** The MCP servers of a user. */
export interface McpServers extends Omit<OpenServerDeps, 'clock'> {
  servers: readonly AcceptedServer[];
}

/** The tools of the servers for one agent. Loads the client only when there are servers; its connections end with the stack. */
export async function mcpTools(
  { servers, ...deps }: McpServers,
  clock: Clock,
  opening: AsyncDisposableStack,
): Promise<Pick<EnginePorts, 'externalTools'>> {
  if (servers.length === 0) return {};
  const { openServer } = await import('../../mcp/client/connection/open-server.ts');
  const { ServerSessions } = await import('../../mcp/client/tools/server-sessions.ts');
  const { serverTools } = await import('../../mcp/client/tools/server-tools.ts');
  return {
    externalTools: ({ decide, schemas }) =>
      servers.flatMap(({ server, tools, offered }) => {
        const sessions = opening.use(new ServerSessions(tools, (op) => openServer(server, { clock, ...deps }, op)));
        return serverTools(offered, {
          schemas,
          async call(tool, input, context) {
            assertReachable(server, context, decide);
            return sessions.call(context.session, tool, input, context.op);
          },
        });
      }),
  };
}

/**
 * Throws TEMPER_POLICY_DENIED for a server on a host that the policy does not let the agent connect to, and for private data that no approver
 * permitted to leave. A server on this machine is a program of its user.
 */
function assertReachable(server: ConfiguredServer, caller: CallerContext, decide: ExternalToolDeps['decide']): void {
  if (!isElsewhere(server)) return;
  const { hostname, port } = new URL(server.url);
  const decision = decide(caller, { kind: 'Network', host: hostname, port: port === '' ? 443 : Number(port) });
  // What needs another approval, the call of the tool asked about.
  if (decision.effect === 'Deny' || isUnapproved(decision)) throw policyDenied(decision);
}

/** A connection to a host that the approver of the call saw is allowed. */
function isUnapproved({ effect, rule }: Decision): boolean {
  return effect === 'Escalate' && rule === PRIVATE_NETWORK_RULE;
}
