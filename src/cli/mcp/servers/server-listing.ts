import { type Digest, digestOf } from '../../../lib/canonical.ts';
import { systemClock } from '../../../lib/clock.ts';
import { ulids } from '../../../lib/ids.ts';
import type { ToolsOfServer } from '../../../mcp/client/tools/listed-tool.ts';
import type { CliIo } from '../../io.ts';
import { userLauncher } from '../../run/programs/user-launcher.ts';
import { configuredServer } from './configured-servers.ts';

/** The tools of a server at one moment. */
export interface ServerListing extends ToolsOfServer {
  /** Of all tools: who accepts it, accepts exactly what was shown. */
  digest: Digest;
}

/** Connects to the server and lists its tools. Throws TEMPER_NOT_FOUND, TEMPER_MANIFEST_INVALID or TEMPER_MCP_SERVER_FAILED. */
export async function listServer(name: string, io: CliIo): Promise<ServerListing> {
  const server = await configuredServer(name, io);
  const { openServer } = await import('../../../mcp/client/connection/open-server.ts');
  const op = { signal: io.signal, deadline: Number.POSITIVE_INFINITY, key: ulids.next('call') };
  const token = (variable: string): string | undefined => io.environment[variable];
  await using connection = await openServer(server, { clock: systemClock, token, launcher: userLauncher() }, op);
  const { tools, refused } = await connection.tools(op);
  const digests = tools.map(({ digest }) => digest).sort();
  return { tools, refused, digest: digestOf(digests) };
}
