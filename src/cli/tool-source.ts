import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ForgeSource } from '../forge/forge.ts';
import { GROUP } from '../api/names.ts';
import { isDigest } from '../lib/canonical.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isJsonObject, member, type Json } from '../lib/json.ts';
import type { CliIo } from './io.ts';

/** One tool found in a file, or what is wrong with the place where one should be. */
export interface FoundTool {
  /** `file` or `file:line`, as shown to people. */
  origin: string;
  /** As far as it can be known. */
  name: string;
  source: ForgeSource | { problem: TemperError };
}

const PACKAGE_SCHEMA = 'agentos.emergent-tool.v1';
const MAXIMUM_CHARACTERS = 256 * 1_048_576;

/**
 * Reads tools from a file, or from standard input for `-`: JSON, JSON Lines or YAML, told apart by their content; in it forge requests,
 * artifacts, EmergentTool manifests and portable packages. Throws TEMPER_USAGE when the file cannot be read or holds nothing.
 */
export async function readTools(file: string, io: CliIo): Promise<FoundTool[]> {
  const text = await readText(file, io);
  const shown = printable(file, 200);
  const entries = parseWhole(text, shown) ?? parseLines(text, shown) ?? (await parseYaml(text, shown));
  if (entries.length === 0) throw new TemperError('TEMPER_USAGE', `${shown} holds no tool`);
  return Promise.all(entries.map(toTool));
}

interface Entry {
  origin: string;
  value: Json | undefined;
  problem?: string;
}

async function readText(file: string, io: CliIo): Promise<string> {
  if (file === '-') return io.stdin();
  try {
    const text = await readFile(resolve(io.cwd, file), 'utf8');
    if (text.length > MAXIMUM_CHARACTERS) throw new TypeError('it is too large');
    return text;
  } catch (error) {
    throw new TemperError('TEMPER_USAGE', `cannot read ${printable(file, 200)}: ${printable(messageOf(error), 200)}`);
  }
}

function parseWhole(text: string, file: string): Entry[] | undefined {
  const value = parseJson(text);
  if (value === undefined) return undefined;
  const list = Array.isArray(value) ? value : [value];
  return list.map((item, index) => ({ origin: list.length === 1 ? file : `${file}[${index}]`, value: item }));
}

/** JSON Lines, when the first line that is not empty is an object by itself. */
function parseLines(text: string, file: string): Entry[] | undefined {
  const lines = text.split('\n');
  const first = lines.find((line) => line.trim() !== '');
  if (first === undefined || !isJsonObject(parseJson(first))) return undefined;
  return lines.flatMap((line, index): Entry[] => {
    if (line.trim() === '') return [];
    const value = parseJson(line);
    const origin = `${file}:${index + 1}`;
    return [value === undefined ? { origin, value, problem: 'the line is not JSON' } : { origin, value }];
  });
}

async function parseYaml(text: string, file: string): Promise<Entry[]> {
  const { parseDocuments } = await import('../api/yaml-documents.ts');
  const { documents, flaws } = parseDocuments(text);
  const [flaw] = flaws;
  if (flaw !== undefined) {
    const { line, column } = flaw.position;
    throw new TemperError(
      'TEMPER_USAGE',
      `${file}:${line}:${column} is neither JSON nor YAML: ${flaw.message}; ${flaw.fix}`,
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

async function toTool({ origin, value, problem }: Entry): Promise<FoundTool> {
  const fail = (name: string, message: string, code: 'TEMPER_FORGE_SHAPE' | 'TEMPER_MANIFEST_INVALID'): FoundTool => ({
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
    if (!isTool) return fail('unnamed', 'the object is no EmergentTool', 'TEMPER_MANIFEST_INVALID');
    return fromManifest(origin, value['spec'] ?? null);
  }
  const name = nameOf(value);
  if (isArtifact(value)) return { origin, name, source: { artifact: value, digest: undefined } };
  return { origin, name, source: { request: value } };
}

function fromManifest(origin: string, spec: Json): FoundTool {
  const artifact = member(spec, 'artifact') ?? null;
  const digest = member(spec, 'digest');
  const name = nameOf(artifact);
  if (isDigest(digest)) return { origin, name, source: { artifact, digest } };
  const problem = new TemperError('TEMPER_MANIFEST_INVALID', 'spec.digest must be sha256: and 64 hexadecimal digits');
  return { origin, name, source: { problem } };
}

async function fromPackage(origin: string, value: Json): Promise<FoundTool> {
  const { parsePackage } = await import('../tempering/packages.ts');
  try {
    const { name, request, digest } = parsePackage(JSON.stringify(value));
    return { origin, name, source: { request, ...(digest === undefined ? {} : { digest }) } };
  } catch (error) {
    if (!isTemperError(error)) throw error;
    return { origin, name: nameOf(member(value, 'tool') ?? null), source: { problem: error } };
  }
}

/** An artifact keeps its schemas and test values as JSON text, and says what it requires. */
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
