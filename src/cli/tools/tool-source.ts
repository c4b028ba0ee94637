import type { ForgeSource } from '../../forge/forge.ts';
import { GROUP } from '../../api/names.ts';
import { isDigest } from '../../lib/canonical.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, member, textAt, type Json } from '../../lib/json.ts';
import { readInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';

/** One tool in a file, or the problem with an entry that should be a tool. */
export interface LoadedTool {
  /** `file`, `file:line` or `file[index]`, for messages. */
  origin: string;
  /** `unnamed` when the entry has no name. */
  name: string;
  source: ForgeSource | { problem: TemperError };
}

const PACKAGE_SCHEMA = 'agentos.emergent-tool.v1';

/**
 * Reads tools from a file, or from standard input for `-`. The format is JSON, JSON Lines or YAML, detected from the content. An entry
 * is a forge request, an artifact, an EmergentTool manifest or a portable package. Throws TEMPER_USAGE when the file cannot be read or
 * contains no entry.
 */
export async function readTools(file: string, io: CliIo): Promise<LoadedTool[]> {
  const text = await readInputFile(file, 'the tool file', io);
  const shown = printable(file, 200);
  const entries = parseWhole(text, shown) ?? parseLines(text, shown) ?? (await parseYaml(text, shown));
  if (entries.length === 0) throw new TemperError('TEMPER_USAGE', `${shown} contains no tool`);
  return Promise.all(entries.map(toTool));
}

interface ToolEntry {
  origin: string;
  value: Json | undefined;
  problem?: string;
}

function parseWhole(text: string, file: string): ToolEntry[] | undefined {
  const value = parseJson(text);
  if (value === undefined) return undefined;
  const list = Array.isArray(value) ? value : [value];
  return list.map((item, index) => ({ origin: list.length === 1 ? file : `${file}[${index}]`, value: item }));
}

/** Parses JSON Lines when the first non-empty line is a JSON object; otherwise undefined. */
function parseLines(text: string, file: string): ToolEntry[] | undefined {
  const lines = text.split('\n');
  const first = lines.find((line) => line.trim() !== '');
  if (first === undefined || !isJsonObject(parseJson(first))) return undefined;
  return lines.flatMap((line, index): ToolEntry[] => {
    if (line.trim() === '') return [];
    const value = parseJson(line);
    const origin = `${file}:${index + 1}`;
    return [value === undefined ? { origin, value, problem: 'the line is not JSON' } : { origin, value }];
  });
}

async function parseYaml(text: string, file: string): Promise<ToolEntry[]> {
  const { parseDocuments } = await import('../../api/yaml-documents.ts');
  const { documents, errors } = parseDocuments(text);
  const [error] = errors;
  if (error !== undefined) {
    const { line, column } = error.position;
    throw new TemperError(
      'TEMPER_USAGE',
      `${file}:${line}:${column} is neither JSON nor YAML: ${error.message}; ${error.fix}`,
    );
  }
  return documents.map(({ value }, index) => ({ origin: documents.length === 1 ? file : `${file}[${index}]`, value }));
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}

async function toTool({ origin, value, problem }: ToolEntry): Promise<LoadedTool> {
  const fail = (name: string, message: string, code: 'TEMPER_FORGE_SHAPE' | 'TEMPER_MANIFEST_INVALID'): LoadedTool => ({
    origin,
    name,
    source: { problem: new TemperError(code, message) },
  });
  if (value === undefined || !isJsonObject(value)) {
    return fail('unnamed', problem ?? 'a tool must be an object', 'TEMPER_FORGE_SHAPE');
  }
  if (value['schemaVersion'] === PACKAGE_SCHEMA) return fromPackage(origin, value);
  if (value['kind'] !== undefined && value['apiVersion'] !== undefined) {
    const { kind, apiVersion } = value;
    const isTool = kind === 'EmergentTool' && typeof apiVersion === 'string' && apiVersion.startsWith(`${GROUP}/`);
    if (!isTool)
      return fail(
        titleOf(value),
        'the object is not an EmergentTool; name the files of tools only',
        'TEMPER_MANIFEST_INVALID',
      );
    return fromManifest(origin, value['spec'] ?? null);
  }
  const name = nameOf(value);
  if (isArtifact(value)) return { origin, name, source: { artifact: value, digest: undefined } };
  return { origin, name, source: { request: value } };
}

/** `Kind/name` of an object. */
function titleOf(object: Json): string {
  return printable(`${textAt(object, ['kind'], 'object')}/${textAt(object, ['metadata', 'name'], 'unnamed')}`, 120);
}

function fromManifest(origin: string, spec: Json): LoadedTool {
  const artifact = member(spec, 'artifact') ?? null;
  const digest = member(spec, 'digest');
  const name = nameOf(artifact);
  if (isDigest(digest)) return { origin, name, source: { artifact, digest } };
  const problem = new TemperError('TEMPER_MANIFEST_INVALID', 'spec.digest must be sha256: and 64 hexadecimal digits');
  return { origin, name, source: { problem } };
}

async function fromPackage(origin: string, value: Json): Promise<LoadedTool> {
  const { parsePackage } = await import('../../tempering/packages/packages.ts');
  try {
    const { name, request, digest } = parsePackage(JSON.stringify(value));
    return { origin, name, source: { request, ...(digest === undefined ? {} : { digest }) } };
  } catch (error) {
    if (!isTemperError(error)) throw error;
    return { origin, name: nameOf(member(value, 'tool') ?? null), source: { problem: error } };
  }
}

/** An artifact, unlike a forge request, contains its schemas as JSON text, and the members `tests` and `requires`. */
function isArtifact(value: Json): boolean {
  return (
    typeof member(value, 'inputSchema') === 'string' &&
    Array.isArray(member(value, 'tests')) &&
    member(value, 'requires') !== undefined
  );
}

function nameOf(value: Json): string {
  const name = member(value, 'name');
  return typeof name === 'string' ? printable(name, 80) : 'unnamed';
}
