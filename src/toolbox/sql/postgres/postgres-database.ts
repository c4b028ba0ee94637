import type { Duplex } from 'node:stream';
import type { Client, FieldDef } from 'pg';
import type Cursor from 'pg-cursor';
import { onAbort } from '../../../lib/async/abort.ts';
import { type CallOptions, withTimeout } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { type Database, SQL_LIMITS, type SqlQuestion, type SqlResult } from '../database.ts';
import { queryFailed, unavailable } from '../errors.ts';
import { QueryShares } from '../query-shares.ts';
import { Rows } from '../rows.ts';
import { assertReader } from './role-check.ts';
import { typeName, valueOf } from './values.ts';

export interface PostgresServer {
  name: string;
  description?: string;
  host: string;
  port: number;
  database: string;
  user: string;
  /** Read for each connection, so that a new password takes effect. */
  password: () => Promise<string>;
  /** Absent: TLS with the certificates of the system. `false`: no TLS, for a server on this machine. */
  tls?: false | { certificateAuthority: () => Promise<string> };
  maxConnections: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
const LOCK_TIMEOUT_MS = 2_000;
/** For the answer of the server about a query that took too long. */
const GRACE_MS = 2_000;
const ROWS_PER_READ = 100;

/**
 * A PostgreSQL server. Each query has a connection of its own, so that nothing of a session is left for the next agent, and a transaction
 * that the server keeps read-only and that is never committed.
 */
export function postgresDatabase(server: PostgresServer, clock: Clock): Database {
  const shares = new QueryShares(server.maxConnections);
  const { name, description } = server;
  return {
    name,
    kind: 'PostgreSQL',
    ...(description === undefined ? {} : { description }),
    query: (question, agent, op) =>
      withTimeout(op, clock, SQL_LIMITS.timeoutMs + GRACE_MS, async (bounded) => {
        using _share = await shares.take(agent, bounded.signal);
        return await queryOnce(server, question, bounded, clock);
      }),
  };
}

async function queryOnce(
  server: PostgresServer,
  question: SqlQuestion,
  op: CallOptions,
  clock: Clock,
): Promise<SqlResult> {
  // The driver is large, so it is loaded with the first query.
  const { Client: PostgresClient } = await import('pg');
  const client = new PostgresClient(await clientOptions(server));
  // An error of the connection also rejects the query that is in work.
  client.on('error', () => undefined);
  using _cancellation = onAbort(op.signal, () => end(client));
  try {
    await connected(client, server);
    const watch = limitReceived(client);
    const left = Math.max(1, Math.floor(op.deadline - clock.monotonic() - GRACE_MS));
    await client.query(beginText(Math.min(SQL_LIMITS.timeoutMs, left)));
    await assertReader(server.name, client);
    return await read(client, question).catch((error: unknown) => {
      throw op.signal.aborted ? queryFailed('it took too long, or the call ended') : watch.error(error);
    });
  } catch (error) {
    throw isTemperError(error) ? error : unavailable(server.name, reasonOf(error), error);
  } finally {
    end(client);
  }
}

async function clientOptions({ host, port, database, user, password, tls }: PostgresServer) {
  const ca = tls === undefined || tls === false ? undefined : await tls.certificateAuthority();
  const secret = await password();
  return {
    host,
    port,
    database,
    user,
    // A function: with an empty text the driver would look for a password in the environment and in the home of the user.
    password: () => secret,
    ssl: tls === false ? false : { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'temper',
    client_encoding: 'UTF8',
    options: '',
  };
}

async function connected(client: Client, { name }: PostgresServer): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    throw unavailable(name, reasonOf(error), error);
  }
}

/** One message with fixed commands; the query of the agent comes alone, by the extended protocol, which takes one statement. */
function beginText(timeoutMs: number): string {
  return [
    'BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY',
    `SET LOCAL statement_timeout = ${timeoutMs}`,
    `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${timeoutMs + GRACE_MS}`,
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL intervalstyle = 'iso_8601'",
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL bytea_output = 'hex'",
    'SET LOCAL extra_float_digits = 1',
  ].join('; ');
}

async function read(client: Client, { query, parameters, maxRows }: SqlQuestion): Promise<SqlResult> {
  const { default: PostgresCursor } = await import('pg-cursor');
  const asText = { getTypeParser: () => (value: string) => value };
  const cursor = client.query(
    new PostgresCursor<(string | null)[]>(query, [...parameters], { rowMode: 'array', types: asText }),
  );
  // The driver calls these functions of a query without a check, and its cursor has none: COPY would end this process.
  const copies = (): void => end(client);
  Object.assign(cursor, { handleCopyData: copies, handleCopyInResponse: copies });
  const rows = new Rows(maxRows);
  let fields: readonly FieldDef[] = [];
  while (rows.wanted > 0) {
    const asked = Math.min(ROWS_PER_READ, rows.wanted);
    const part = await readPart(cursor, asked);
    fields = part.fields;
    if (fields.length > SQL_LIMITS.columns) throw queryFailed(`it has more than ${SQL_LIMITS.columns} columns`);
    for (const row of part.rows) rows.add(row.map((value, index) => valueOf(fields[index]?.dataTypeID ?? 0, value)));
    if (part.rows.length < asked) break;
  }
  return {
    columns: fields.map(({ name, dataTypeID }) => ({ name, type: typeName(dataTypeID) })),
    rows: rows.values,
    truncated: rows.isIncomplete,
  };
}

function readPart(
  cursor: Cursor<(string | null)[]>,
  count: number,
): Promise<{ rows: (string | null)[][]; fields: readonly FieldDef[] }> {
  return new Promise((resolve, reject) => {
    cursor.read(count, (error, rows, result) => {
      if (error) reject(error);
      else resolve({ rows, fields: result.fields });
    });
  });
}

/** Ends the connection when the server sends more than a query may return: the driver keeps a whole row in memory. */
function limitReceived(client: Client): { error: (error: unknown) => Error } {
  const { stream } = connectionOf(client);
  let received = 0;
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (received > SQL_LIMITS.receivedBytes) end(client);
  });
  return {
    error: (error) => {
      if (isTemperError(error)) return error;
      return queryFailed(
        received > SQL_LIMITS.receivedBytes
          ? `the server sent more than ${SQL_LIMITS.receivedBytes} bytes; ask for fewer or smaller rows`
          : reasonOf(error),
      );
    },
  };
}

/** The server rolls the transaction back. */
function end(client: Client): void {
  connectionOf(client).stream.destroy();
}

/** The types of the driver name no stream. */
function connectionOf(client: Client): { stream: Duplex } {
  return (client as unknown as { connection: { stream: Duplex } }).connection;
}

/** The message of the server with its code, or the code of the connection. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  return `${error.message}${code}`;
}
