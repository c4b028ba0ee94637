import { isAbsolute } from 'node:path';
import { assertKnownMembers, invalidMember, namedEntries, requiredText } from '../../lib/config/config-members.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { secretVariable } from './secret-variable.ts';

interface ConfiguredFile {
  type: 'SQLite';
  name: string;
  description?: string;
  /** Absolute path. */
  file: string;
}

interface ConfiguredServer {
  type: 'PostgreSQL';
  name: string;
  description?: string;
  host: string;
  port: number;
  database: string;
  user: string;
  passwordEnvironment: string;
  /** Absolute path of the only trusted authorities, PEM. */
  caFile?: string;
  tls: boolean;
  maxConnections: number;
}

export type ConfiguredDatabase = ConfiguredFile | ConfiguredServer;

const OWN = ['name', 'type', 'description'];
const SERVER = [...OWN, 'host', 'port', 'database', 'user', 'passwordEnvironment', 'caFile', 'tls', 'maxConnections'];
const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1']);
const DEFAULT_PORT = 5_432;
const DEFAULT_CONNECTIONS = 4;
const MAX_CONNECTIONS = 50;
const MAX_DESCRIPTION = 300;

/** Parses `{databases: [{name, type, …}]}`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseDatabases(file: string, value: unknown): ConfiguredDatabase[] {
  return namedEntries(file, value, 'databases').map(({ field, entry }) => {
    const name = requiredText(file, `${field}.name`, entry['name']);
    const description = entry['description'];
    if (description !== undefined && (typeof description !== 'string' || description.length > MAX_DESCRIPTION))
      throw invalidMember(file, `${field}.description`, `must be a text of at most ${MAX_DESCRIPTION} characters`);
    const own = { name, ...(description === undefined ? {} : { description }) };
    if (entry['type'] === 'SQLite') return { ...own, ...readFileEntry(file, field, entry) };
    if (entry['type'] === 'PostgreSQL') return { ...own, ...readServerEntry(file, field, entry) };
    throw invalidMember(file, `${field}.type`, 'must be PostgreSQL or SQLite');
  });
}

function readFileEntry(file: string, field: string, entry: JsonObject): Pick<ConfiguredFile, 'type' | 'file'> {
  assertKnownMembers(file, `${field}.`, entry, [...OWN, 'file']);
  return { type: 'SQLite', file: absolutePath(file, `${field}.file`, entry['file']) };
}

function readServerEntry(
  file: string,
  field: string,
  entry: JsonObject,
): Omit<ConfiguredServer, 'name' | 'description'> {
  assertKnownMembers(file, `${field}.`, entry, SERVER);
  const host = requiredText(file, `${field}.host`, entry['host']);
  const { tls = true, caFile } = entry;
  if (typeof tls !== 'boolean' || (!tls && !LOCAL_HOSTS.has(host)))
    throw invalidMember(file, `${field}.tls`, 'may be false only for a server on localhost');
  return {
    type: 'PostgreSQL',
    host,
    port: count(file, `${field}.port`, entry['port'] ?? DEFAULT_PORT, 65_535),
    database: requiredText(file, `${field}.database`, entry['database']),
    user: requiredText(file, `${field}.user`, entry['user']),
    passwordEnvironment: secretVariable(file, `${field}.passwordEnvironment`, entry['passwordEnvironment'] ?? ''),
    tls,
    maxConnections: count(
      file,
      `${field}.maxConnections`,
      entry['maxConnections'] ?? DEFAULT_CONNECTIONS,
      MAX_CONNECTIONS,
    ),
    ...(caFile === undefined ? {} : { caFile: absolutePath(file, `${field}.caFile`, caFile) }),
  };
}

function absolutePath(file: string, field: string, value: Json | undefined): string {
  const path = requiredText(file, field, value);
  if (!isAbsolute(path)) throw invalidMember(file, field, 'must be an absolute path');
  return path;
}

function count(file: string, field: string, value: Json, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw invalidMember(file, field, `must be a whole number from 1 to ${max}`);
}
