import { invalidMember } from '../../../lib/config/config-members.ts';
import { isDigest } from '../../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../../../lib/json.ts';
import { definitionDigest, type ListedTool } from './listed-tool.ts';

/** What a user accepted, by the name of the server. */
export type AcceptedTools = ReadonlyMap<string, readonly ListedTool[]>;

/** Throws TEMPER_MANIFEST_INVALID for a file that Temper did not write: each definition must have its digest. */
export function parseAcceptedTools(file: string, value: Json): AcceptedTools {
  const servers = member(value, 'servers');
  if (!isJsonObject(servers)) throw invalidMember(file, 'servers', 'must be an object');
  return new Map(
    Object.entries(servers).map(([server, tools]) => {
      if (!Array.isArray(tools)) throw invalidMember(file, `servers.${server}`, 'must be a list');
      return [server, tools.map((tool, index) => readAccepted(file, `servers.${server}[${index}]`, server, tool))];
    }),
  );
}

/** The file of the accepted tools. */
export function acceptedToolsText(accepted: AcceptedTools): string {
  return `${JSON.stringify({ servers: Object.fromEntries(accepted) }, undefined, 2)}\n`;
}

function readAccepted(file: string, field: string, server: string, value: Json): ListedTool {
  const [inputSchema, outputSchema] = [member(value, 'inputSchema'), member(value, 'outputSchema')];
  const sideEffects = member(value, 'sideEffects');
  if (!isJsonObject(inputSchema) || typeof sideEffects !== 'boolean')
    throw invalidMember(file, field, 'has no inputSchema or no sideEffects');
  const definition = {
    name: textAt(value, ['name']),
    remoteName: textAt(value, ['remoteName']),
    description: textAt(value, ['description']),
    inputSchema,
    action: textAt(value, ['action']),
    sideEffects,
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonObject }),
  };
  const digest = member(value, 'digest');
  if (!isDigest(digest) || definitionDigest(definition) !== digest || !definition.name.startsWith(`${server}_`))
    throw invalidMember(file, field, 'was changed after it was accepted; accept the tools of the server again');
  return { ...definition, digest };
}
