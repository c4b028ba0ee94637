import type { ClientBase } from 'pg';
import { roleRefused } from '../errors.ts';

/** The roles of PostgreSQL that reach beyond the data that was granted: files and programs of the server, all tables, other sessions. */
const MIGHTY = [
  'pg_checkpoint',
  'pg_create_subscription',
  'pg_execute_server_program',
  'pg_maintain',
  'pg_read_server_files',
  'pg_signal_backend',
  'pg_write_all_data',
  'pg_write_server_files',
];

const QUESTION = `SELECT r.rolname::text AS role, r.rolname = session_user AS own,
  CASE WHEN r.rolsuper THEN 'SUPERUSER' WHEN r.rolcreaterole THEN 'CREATEROLE' WHEN r.rolreplication THEN 'REPLICATION'
       WHEN r.rolbypassrls THEN 'BYPASSRLS' ELSE '' END AS attribute
  FROM pg_catalog.pg_roles r
  WHERE (r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR r.rolname = ANY ($1::text[]))
    AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
  ORDER BY own DESC, r.rolsuper DESC, 1 LIMIT 1`;
const READ_ONLY = `SELECT pg_catalog.current_setting('transaction_read_only') AS value`;

/**
 * Throws TEMPER_DATABASE_ROLE_REFUSED when the role of the connection, or one that it can become, has more than privileges on data, and when
 * the server does not keep the transaction read-only.
 */
export async function assertReader(database: string, client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ role: string; own: boolean; attribute: string }>(QUESTION, [MIGHTY]);
  const [found] = rows;
  if (found !== undefined) {
    const what = found.attribute === '' ? `a member of "${found.role}"` : found.attribute;
    const problem = found.own
      ? `its role "${found.role}" is ${what}`
      : `its role can become "${found.role}"${found.attribute === '' ? '' : `, which is ${found.attribute}`}`;
    throw roleRefused(database, problem);
  }
  const [setting] = (await client.query<{ value: string }>(READ_ONLY)).rows;
  if (setting?.value !== 'on') throw roleRefused(database, 'the server does not keep the transaction read-only');
}
