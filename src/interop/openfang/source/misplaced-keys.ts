import type { FieldPath } from '../../../api/findings.ts';
import { isJsonObject, type JsonObject } from '../../../lib/json.ts';

/** Keys of the first level that grant nothing. Below the header of a table, TOML makes them keys of that table. */
const MISPLACED = [
  'priority',
  'skills',
  'mcp_servers',
  'tags',
  'workspace',
  'generate_identity_files',
  'tool_allowlist',
  'tool_blocklist',
] as const;
const TABLES: readonly string[] = [
  'model',
  'resources',
  'capabilities',
  'routing',
  'autonomous',
  'exec_policy',
  'schedule',
];

export interface PlacedManifest {
  readonly manifest: JsonObject;
  /** The table in which a key of the first level stands in the file. */
  readonly tables: ReadonlyMap<string, FieldPath>;
}

/** Reads keys of the first level that stand below a table header as their author meant them. OpenFang does not. */
export function withPlacedKeys(source: JsonObject): PlacedManifest {
  const tables = new Map<string, FieldPath>();
  let manifest = source;
  for (const path of tablePaths(source)) {
    for (const key of MISPLACED) {
      const table = tableAt(manifest, path);
      if (table === undefined || !Object.hasOwn(table, key) || Object.hasOwn(manifest, key)) continue;
      manifest = { ...withoutKey(manifest, path, key), [key]: table[key] ?? null };
      tables.set(key, path);
    }
  }
  return { manifest, tables };
}

function tablePaths(source: JsonObject): string[][] {
  const tools = Object.hasOwn(source, 'tools') && isJsonObject(source['tools']) ? Object.keys(source['tools']) : [];
  return [...TABLES.map((name) => [name]), ...tools.map((name) => ['tools', name])];
}

function tableAt(source: JsonObject, path: readonly string[]): JsonObject | undefined {
  let table: JsonObject = source;
  for (const key of path) {
    const inner = Object.hasOwn(table, key) ? table[key] : undefined;
    if (!isJsonObject(inner)) return undefined;
    table = inner;
  }
  return table;
}

function withoutKey(source: JsonObject, [first = '', ...rest]: readonly string[], key: string): JsonObject {
  const table = tableAt(source, [first]) ?? {};
  if (rest.length > 0) return { ...source, [first]: withoutKey(table, rest, key) };
  const { [key]: _, ...others } = table;
  return { ...source, [first]: others };
}
