import { readFile } from 'node:fs/promises';
import { digestOf } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Database } from '../../toolbox/sql/database.ts';
import { postgresDatabase } from '../../toolbox/sql/postgres/postgres-database.ts';
import { queryDatabase, sqlQueryDescriptor } from '../../toolbox/sql/sql-query.ts';
import type { BrokeredTool } from '../brokered/port.ts';
import type { DatabaseService } from './config.ts';

const DEFAULT_PORT = 5_432;
const DEFAULT_CONNECTIONS = 4;

/** A database of the release, for the namespaces of its entry. */
export interface OpenDatabase {
  readonly service: DatabaseService;
  readonly database: Database;
}

/** TLS always verifies the certificate and the name. All namespaces of a database share its connections. */
export function openDatabase(service: DatabaseService, clock: Clock): OpenDatabase {
  const { name, description, host, port = DEFAULT_PORT, database, user, passwordFile, caFile } = service;
  const server = {
    name,
    ...(description === undefined ? {} : { description }),
    host,
    port,
    database,
    user,
    password: () => passwordIn(passwordFile),
    ...(caFile === undefined ? {} : { tls: { certificateAuthority: () => fileOf(caFile, 'its authorities') } }),
    maxConnections: service.maxConnections ?? DEFAULT_CONNECTIONS,
  };
  return { service, database: postgresDatabase(server, clock) };
}

/** `sql_query` over the databases of one namespace: its definition names no other one. */
export function databaseTool(databases: readonly OpenDatabase[]): BrokeredTool {
  const opened = databases.map(({ database }) => database);
  const descriptor = sqlQueryDescriptor(opened);
  const servers = databases.map(({ service: { name, host, port, database, user } }) => [
    name,
    host,
    port ?? DEFAULT_PORT,
    database,
    user,
  ]);
  return {
    descriptor,
    definition: digestOf({ descriptor, servers } as never),
    requests: () => [],
    execute: (input, { claims: { namespace, agent } }, op) => queryDatabase(opened, input, `${namespace}/${agent}`, op),
  };
}

/** An editor adds the line break at the end. */
async function passwordIn(path: string): Promise<string> {
  return (await fileOf(path, 'its password')).replace(/\r?\n$/, '');
}

async function fileOf(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new TemperError('TEMPER_DATABASE_UNAVAILABLE', `the file with ${what} cannot be read`, { cause });
  }
}
