import { type Digest, digestOf, tryDigestOf } from '../../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject, jsonDepth, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { validateSchema } from '../../../tools/json-schema/compiler.ts';
import { actionOf } from './annotations.ts';

/** Limits of what one server lists. */
export const LISTED_LIMITS = {
  tools: 200,
  name: 63,
  remoteName: 128,
  description: 4_096,
  schemaBytes: 32_768,
  schemaDepth: 32,
};

/** A tool as a server lists it, within the limits. The user accepts it as it is. */
export interface ListedTool {
  /** The name in Temper: the name of the server, an underscore and the name of the tool. */
  name: string;
  /** The name that the server knows. */
  remoteName: string;
  description: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  action: string;
  sideEffects: boolean;
  /** Of everything that a model or a policy reads of the tool: with another description it is another tool. */
  digest: Digest;
}

/** A tool that cannot be used, and why. */
export interface UnusableTool {
  remoteName: string;
  reason: string;
}

export interface ToolsOfServer {
  tools: ListedTool[];
  refused: UnusableTool[];
}

/** The server that lists the tools. */
export interface ListingServer {
  /** Its name in errors, and before the names of its tools. */
  name: string;
  /** Capabilities name its tools, so their names begin with no prefix. */
  isOfCapability?: boolean;
  /** On another machine: what its tools get leaves this one. */
  isElsewhere: boolean;
}

/** Reads what an untrusted server lists. A tool beyond a limit is refused, and so are all tools whose names become the same. */
export function readListedTools(server: ListingServer, listed: readonly Json[]): ToolsOfServer {
  const tools: ListedTool[] = [];
  const refused: UnusableTool[] = [];
  for (const entry of listed.slice(0, LISTED_LIMITS.tools)) {
    const remoteName = textAt(entry, ['name']);
    const read = readTool(server, remoteName, entry);
    if (typeof read === 'string') refused.push({ remoteName: printable(remoteName, 128), reason: read });
    else tools.push(read);
  }
  if (listed.length > LISTED_LIMITS.tools) {
    const reason = `the server lists ${listed.length} tools, and ${LISTED_LIMITS.tools} are read`;
    refused.push({ remoteName: '', reason });
  }
  return withoutDuplicates({ tools, refused });
}

/** The tool, or why it is refused. */
function readTool(server: ListingServer, remoteName: string, entry: Json): ListedTool | string {
  const { isOfCapability = false } = server;
  const plainName = remoteName.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '_');
  const name = isOfCapability ? plainName : `${server.name}_${plainName}`;
  const maxName = isOfCapability ? LISTED_LIMITS.remoteName : LISTED_LIMITS.name;
  if (remoteName === '') return 'it has no name';
  if (name.length > maxName) return `${name.length} characters in its name; at most ${maxName}`;
  const description = textAt(entry, ['description']);
  if (description.length > LISTED_LIMITS.description)
    return `${description.length} characters in its description; at most ${LISTED_LIMITS.description}`;
  const { inputSchema, outputSchema, annotations } = isJsonObject(entry) ? entry : {};
  const problem = schemaProblem(inputSchema, 'inputSchema') ?? optionalProblem(outputSchema);
  if (problem !== undefined) return problem;
  const hints = isJsonObject(annotations) ? annotations : {};
  const read = { description, inputSchema: inputSchema as JsonObject, ...actionOf(hints, server.isElsewhere) };
  const output = outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonObject };
  const definition = { name, remoteName, ...read, ...output };
  const digest = definitionDigest(definition);
  return digest === undefined ? 'it is not canonical JSON' : { ...definition, digest };
}

/** Undefined for what is no canonical JSON. */
export function definitionDigest(tool: Omit<ListedTool, 'digest'>): Digest | undefined {
  return tryDigestOf({ ...tool });
}

/**
 * What a Capability pins: everything that the server says of the tool and that Temper reads, under the name that the server knows. It is
 * the same for each user, whatever name the server has in `mcp.yaml`.
 */
export function pinnedDigest({
  remoteName,
  description,
  inputSchema,
  outputSchema,
  action,
  sideEffects,
}: ListedTool): Digest {
  const output = outputSchema === undefined ? {} : { outputSchema };
  return digestOf({ tool: remoteName, description, inputSchema, ...output, action, sideEffects });
}

function optionalProblem(schema: Json | undefined): string | undefined {
  return schema === undefined ? undefined : schemaProblem(schema, 'outputSchema');
}

/** The size and the depth come first: the other checks visit the whole schema. */
function schemaProblem(schema: Json | undefined, what: string): string | undefined {
  if (!isJsonObject(schema)) return `its ${what} is not an object`;
  if (schema['type'] !== 'object') return `its ${what} is not of type object`;
  const { schemaBytes, schemaDepth } = LISTED_LIMITS;
  if (jsonDepth(schema, schemaDepth + 1) > schemaDepth) return `its ${what} is deeper than ${schemaDepth} levels`;
  if (Buffer.byteLength(JSON.stringify(schema)) > schemaBytes) return `its ${what} is larger than ${schemaBytes} bytes`;
  const violation = validateSchema(schema, what).find(({ problem }) => problem !== 'unknown-keyword');
  return violation === undefined ? undefined : printable(violation.message, 300);
}

/** None of the tools with the same name can be chosen over the others: the second may be there to take the calls of the first. */
function withoutDuplicates({ tools, refused }: ToolsOfServer): ToolsOfServer {
  const counts = new Map<string, number>();
  for (const { name } of tools) counts.set(name, (counts.get(name) ?? 0) + 1);
  const isDuplicate = ({ name }: ListedTool): boolean => (counts.get(name) ?? 0) > 1;
  const same = tools
    .filter(isDuplicate)
    .map(({ name, remoteName }) => ({ remoteName, reason: `several tools of the server become ${name}` }));
  return { tools: tools.filter((tool) => !isDuplicate(tool)), refused: [...refused, ...same] };
}
