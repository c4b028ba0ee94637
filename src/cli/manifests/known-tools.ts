import { resolve } from 'node:path';
import { builtInNames } from '../../engine/built-in.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { assertPlainFiles } from '../../standalone/trust/private-folder.ts';
import type { CliIo } from '../io.ts';
import { acceptedDescriptors } from '../mcp/servers/configured-servers.ts';
import { listStateTools, type StateTool, toolName } from '../state/state-tools.ts';

/**
 * The names of the tools that exist for an agent of `temper run`: built-in ones, those of the user's MCP servers, and the forged ones of the
 * state folder. What cannot be read has no names here: it only takes away warnings, and `temper run` reports it itself.
 */
export async function knownTools(state: string, io: CliIo): Promise<readonly string[]> {
  const [forged, accepted] = await Promise.all([
    forgedTools(resolve(io.cwd, state)).catch(() => []),
    acceptedDescriptors(io).catch(() => []),
  ]);
  return [...builtInNames(), ...accepted.map(({ name }) => name), ...forged.map(({ value }) => toolName(value))];
}

async function forgedTools(folder: string): Promise<StateTool[]> {
  assertPlainFiles(folder);
  return listStateTools(fileRecordStore(folder));
}
