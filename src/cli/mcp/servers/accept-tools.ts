import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import type { ListedTool } from '../../../mcp/client/tools/listed-tool.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { assertOwnNames, readAccepted, storeAccepted } from './configured-servers.ts';
import { listServer } from './server-listing.ts';

export interface AcceptOptions {
  server: string;
  /** The digest of the list that the user read. */
  digest: string;
  /** Only these tools of it; all when absent. */
  tool?: readonly string[];
}

/**
 * Accepts tools of a server, in place of those that were accepted before. Throws TEMPER_MCP_TOOL_CHANGED when the server does not list what
 * the user read.
 */
export async function acceptTools({ server, digest, tool: names }: AcceptOptions, io: CliIo): Promise<number> {
  const listing = await listServer(server, io);
  if (listing.digest !== digest)
    throw new TemperError(
      'TEMPER_MCP_TOOL_CHANGED',
      `the tools of MCP server "${printable(server, 80)}" are not those with this digest; read them again with temper mcp tools ${printable(server, 80)}`,
    );
  const tools = names === undefined ? listing.tools : names.map((name) => toolNamed(name, listing.tools));
  const others = [...(await readAccepted(io))].filter(([name]) => name !== server);
  assertOwnNames([...others.flatMap(([, accepted]) => accepted), ...tools]);
  await storeAccepted(server, tools, io);
  io.out(`accepted ${tools.length} of ${listing.tools.length} tools of ${server}\n`);
  return EXIT.ok;
}

function toolNamed(name: string, tools: readonly ListedTool[]): ListedTool {
  const found = tools.find((tool) => tool.name === name);
  if (found !== undefined) return found;
  throw new TemperError('TEMPER_NOT_FOUND', `the server lists no tool "${printable(name, 80)}" that can be used`);
}
