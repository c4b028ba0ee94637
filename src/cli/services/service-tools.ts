import { readFile } from 'node:fs/promises';
import { systemClock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { AgentDefinition } from '../../standalone/team/member.ts';
import type { Database } from '../../toolbox/sql/database.ts';
import { SQL_QUERY_NAME, sqlQueryDescriptor, sqlQueryTool } from '../../toolbox/sql/sql-query.ts';
import { WEB_SEARCH, WEB_SEARCH_NAME, webSearchTool } from '../../toolbox/web/search/web-search.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { readPrivateConfig } from '../input/private-config.ts';
import type { CliIo } from '../io.ts';
import { type ConfiguredDatabase, parseDatabases } from './read-databases.ts';
import { type ConfiguredSearch, parseSearch } from './read-search.ts';

const SEARCH = 'search.yaml';
const DATABASES = 'databases.yaml';

/** The services of the user: no manifest names where a run sends a key. */
interface Services {
  search?: ConfiguredSearch;
  databases: readonly ConfiguredDatabase[];
}

/**
 * The tools of the services in the configuration folder of the user. Throws TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot
 * be read.
 */
export async function serviceTools(io: CliIo): Promise<Tool[]> {
  const { search, databases } = await readServices(io);
  const opened = await Promise.all(databases.map((database) => openDatabase(database, io)));
  return [
    ...(search === undefined ? [] : [await openSearch(search, io)]),
    ...(opened.length === 0 ? [] : [sqlQueryTool(opened)]),
  ];
}

/** Descriptors of these tools, for callers that do not run them. */
export async function serviceDescriptors(io: CliIo): Promise<ToolDescriptor[]> {
  const { search, databases } = await readServices(io);
  return [
    ...(search === undefined ? [] : [WEB_SEARCH]),
    ...(databases.length === 0
      ? []
      : [sqlQueryDescriptor(databases.map(({ type: kind, ...named }) => ({ ...named, kind })))]),
  ];
}

/** Why an agent does not have a tool that its manifest grants by name. */
export function missingServices(agents: readonly Pick<AgentDefinition, 'agent'>[], tools: readonly Tool[]): string[] {
  const files = [
    [WEB_SEARCH_NAME, SEARCH],
    [SQL_QUERY_NAME, DATABASES],
  ] as const;
  return files.flatMap(([name, file]) => {
    if (tools.some(({ descriptor }) => descriptor.name === name)) return [];
    const granted = agents.filter(({ agent }) => agent.spec.grants?.tools?.includes(name) === true);
    return granted.map(
      ({ agent }) =>
        `agent "${printable(agent.metadata.name, 63)}" has no tool ${name}, because your configuration folder has no ${file}`,
    );
  });
}

async function readServices(io: CliIo): Promise<Services> {
  const search = await readPrivateConfig(SEARCH, 'the file of the search service', io);
  const databases = await readPrivateConfig(DATABASES, 'the file of databases', io);
  return {
    ...(search.value === undefined ? {} : { search: parseSearch(search.file, search.value) }),
    databases: databases.value === undefined ? [] : parseDatabases(databases.file, databases.value),
  };
}

async function openSearch({ keyEnvironment, ...provider }: ConfiguredSearch, { environment }: CliIo): Promise<Tool> {
  const { httpSearch } = await import('../../toolbox/web/search/http-search.ts');
  const key = async (): Promise<string | undefined> => {
    const value = keyEnvironment === undefined ? undefined : environment[keyEnvironment];
    return value === '' ? undefined : value;
  };
  return webSearchTool(httpSearch({ provider, key, clock: systemClock }));
}

async function openDatabase(database: ConfiguredDatabase, { environment }: CliIo): Promise<Database> {
  if (database.type === 'SQLite') {
    const { sqliteDatabase } = await import('../../toolbox/sql/sqlite/sqlite-database.ts');
    return sqliteDatabase(database, systemClock);
  }
  const { postgresDatabase } = await import('../../toolbox/sql/postgres/postgres-database.ts');
  const { type: _type, passwordEnvironment, caFile, tls, ...server } = database;
  const password = async (): Promise<string> => environment[passwordEnvironment] ?? '';
  const trust = tls
    ? caFile === undefined
      ? {}
      : { tls: { certificateAuthority: () => authority(caFile) } }
    : { tls: false as const };
  return postgresDatabase({ ...server, password, ...trust }, systemClock);
}

async function authority(caFile: string): Promise<string> {
  try {
    return await readFile(caFile, 'utf8');
  } catch (cause) {
    throw new TemperError('TEMPER_DATABASE_UNAVAILABLE', `caFile cannot be read: ${printable(messageOf(cause), 200)}`, {
      cause,
    });
  }
}
