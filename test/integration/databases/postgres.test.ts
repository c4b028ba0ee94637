import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { POSTGRES_PASSWORD, type PostgresServer, startPostgres } from '../../support/postgres-server.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { ErrorCode } from '../../../src/lib/error-codes.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import type { SqlParameter, SqlResult } from '../../../src/toolbox/sql/database.ts';
import { postgresDatabase } from '../../../src/toolbox/sql/postgres/postgres-database.ts';

const SETUP = `
  CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(12,2), paid boolean, tags text[], note text);
  INSERT INTO orders SELECT n, n * 1.25, n % 2 = 0, ARRAY['a,b', NULL, 'c"d'], 'order ' || n FROM generate_series(1, 5000) n;
  CREATE SEQUENCE numbers;
  CREATE FUNCTION sneak() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN INSERT INTO orders VALUES (-1); RETURN 1; END $$;
  CREATE PROCEDURE sneak_out() LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN COMMIT; INSERT INTO orders VALUES (-2); COMMIT; END $$;
  CREATE ROLE reader LOGIN PASSWORD '${POSTGRES_PASSWORD}';
  GRANT SELECT ON orders TO reader;
  GRANT ALL ON SEQUENCE numbers TO reader;
  GRANT EXECUTE ON FUNCTION sneak() TO reader;
  GRANT EXECUTE ON PROCEDURE sneak_out() TO reader;
  CREATE ROLE writer LOGIN PASSWORD '${POSTGRES_PASSWORD}';
  GRANT ALL ON orders TO writer;
  GRANT ALL ON SCHEMA public TO writer;
  CREATE ROLE root LOGIN SUPERUSER PASSWORD '${POSTGRES_PASSWORD}';
  CREATE ROLE grows LOGIN PASSWORD '${POSTGRES_PASSWORD}' IN ROLE root;
  CREATE ROLE starts LOGIN PASSWORD '${POSTGRES_PASSWORD}' IN ROLE pg_execute_server_program;
  CREATE ROLE names LOGIN CREATEROLE PASSWORD '${POSTGRES_PASSWORD}';
`;

describe('a PostgreSQL database', { timeout: 600_000 }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
    await server.execute(SETUP);
  });
  after(() => server[Symbol.asyncDispose]());

  interface Changes {
    user?: string;
    password?: string;
    host?: string;
    certificate?: string;
    maxConnections?: number;
  }
  const database = ({
    user = 'reader',
    password = POSTGRES_PASSWORD,
    host = 'localhost',
    certificate,
    maxConnections = 4,
  }: Changes = {}) =>
    postgresDatabase(
      {
        name: 'sales',
        host,
        port: server.port,
        database: 'postgres',
        user,
        password: async () => password,
        tls: { certificateAuthority: async () => certificate ?? server.certificate },
        maxConnections,
      },
      systemClock,
    );
  const ask = (
    query: string,
    {
      parameters = [],
      maxRows = 10,
      timeoutMs = 60_000,
      ...changes
    }: Changes & { parameters?: SqlParameter[]; maxRows?: number; timeoutMs?: number } = {},
  ): Promise<SqlResult> => {
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + timeoutMs, key: 'test' };
    return database(changes).query({ query, parameters, maxRows }, 'team-a/analyst', op);
  };
  const failsWith = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      return true;
    });

  it('a query returns columns and rows, with parameters beside the statement', async () => {
    assert.deepEqual(
      await ask('SELECT id, total, paid, tags FROM orders WHERE id = $1 AND note = $2', { parameters: [7, 'order 7'] }),
      {
        columns: [
          { name: 'id', type: 'int8' },
          { name: 'total', type: 'numeric' },
          { name: 'paid', type: 'bool' },
          { name: 'tags', type: 'text[]' },
        ],
        rows: [['7', '8.75', false, ['a,b', null, 'c"d']]],
        truncated: false,
      },
    );
    const { rows } = await ask('SELECT count(*) FROM orders WHERE note = $1', { parameters: ["' OR true --"] });
    assert.deepEqual(rows, [['0']]);
  });

  it('each type has its form in JSON', async () => {
    const values: [sql: string, value: unknown][] = [
      ['9223372036854775807::int8', '9223372036854775807'],
      ['1.10::numeric', '1.10'],
      ['7::int4', 7],
      ['0.1::float8', 0.1],
      ["'NaN'::float8", 'NaN'],
      ['true', true],
      ['NULL::int', null],
      ["date '2026-03-01'", '2026-03-01'],
      ["timestamptz '2026-03-01 12:00:00.5+02'", '2026-03-01T10:00:00.5Z'],
      ["timestamp '2026-03-01 12:00:00'", '2026-03-01T12:00:00'],
      ["'infinity'::timestamptz", 'infinity'],
      ["interval '1 day 2 hours'", 'P1DT2H'],
      [String.raw`'\xdeadbeef'::bytea`, '3q2+7w=='],
      [`'{"a":[1,null]}'::jsonb`, { a: [1, null] }],
      [
        'ARRAY[[1,2],[3,4]]',
        [
          [1, 2],
          [3, 4],
        ],
      ],
      ["'{}'::text[]", []],
      [String.raw`ARRAY['x\y', 'NULL', '{']`, [String.raw`x\y`, 'NULL', '{']],
      ["'[0:1]={1,2}'::int[]", '[0:1]={1,2}'],
      ["'192.0.2.1'::inet", '192.0.2.1'],
    ];
    const { rows } = await ask(`SELECT ${values.map(([sql]) => sql).join(', ')}`);
    assert.deepEqual(rows, [values.map(([, value]) => value)]);
  });

  it('a result ends at its limits of rows, of characters of all rows and of one value', async () => {
    const some = await ask('SELECT id FROM orders ORDER BY id', { maxRows: 3 });
    assert.deepEqual([some.rows, some.truncated], [[['1'], ['2'], ['3']], true]);
    assert.equal((await ask('SELECT id FROM orders WHERE id <= 3', { maxRows: 3 })).truncated, false);
    const wide = await ask("SELECT repeat('x', 10000) FROM orders", { maxRows: 1_000 });
    assert.ok(wide.rows.length > 5 && wide.rows.length < 25 && wide.truncated, String(wide.rows.length));
    const long = await ask("SELECT repeat('x', 30000)");
    assert.ok(JSON.stringify(long.rows).length < 21_000 && long.truncated);
    await failsWith('TEMPER_DATABASE_QUERY_FAILED', ask("SELECT repeat('x', 50000000)"), /more than 8388608 bytes/);
    const columns = Array.from({ length: 201 }, (_, index) => `1 AS c${index}`).join(', ');
    await failsWith('TEMPER_DATABASE_QUERY_FAILED', ask(`SELECT ${columns}`), /200 columns/);
  });

  it('no statement changes anything, whatever the role may do', async () => {
    for (const user of ['reader', 'writer']) {
      for (const query of [
        'INSERT INTO orders VALUES (0)',
        'UPDATE orders SET total = 0',
        'DELETE FROM orders',
        'TRUNCATE orders',
        'DROP TABLE orders',
        'CREATE TABLE mine (a int)',
        'WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone',
        'SELECT sneak()',
        "SELECT nextval('numbers')",
        'EXPLAIN ANALYZE DELETE FROM orders',
        'DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM orders; END $$',
        "DO $$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); DELETE FROM orders; END $$",
        'CALL sneak_out()',
        'COPY orders FROM STDIN',
        "COPY (SELECT 1) TO PROGRAM 'touch /tmp/never'",
        "COPY (SELECT 1) TO '/tmp/never'",
        "SELECT pg_read_file('/etc/passwd')",
        'SELECT 1; DELETE FROM orders',
        'COMMIT; DELETE FROM orders',
        'VACUUM',
        'CREATE DATABASE mine',
        'ALTER ROLE reader SUPERUSER',
        'GRANT ALL ON orders TO reader',
        'SET ROLE admin',
        'SELECT lo_from_bytea(0, NULL) FROM nowhere',
      ]) {
        await failsWith('TEMPER_DATABASE_QUERY_FAILED', ask(query, { user, timeoutMs: 20_000 }), /./);
      }
    }
    const { rows } = await ask('SELECT count(*), min(id), sum(total) FROM orders');
    assert.deepEqual(rows, [['5000', '1', '15628125.00']]);
  });

  it('statements that change a session or a transaction have no effect on the next query', async () => {
    for (const query of [
      'COMMIT',
      'ROLLBACK',
      'SET TRANSACTION READ WRITE',
      'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE',
      'SET statement_timeout = 0',
      "SELECT set_config('default_transaction_read_only', 'off', false)",
      'SELECT pg_advisory_lock(1)',
      'LISTEN orders',
      "SELECT pg_notify('orders', 'x')",
      'CREATE TEMP TABLE mine (a int)',
      'SELECT lo_create(0)',
    ]) {
      await ask(query, { user: 'writer' }).catch((error: unknown) =>
        assert.ok(isTemperError(error, 'TEMPER_DATABASE_QUERY_FAILED'), `${query}: ${String(error)}`),
      );
      const next = await ask(
        "SELECT current_setting('transaction_read_only'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_largeobject_metadata)",
        { user: 'writer' },
      );
      assert.deepEqual(next.rows, [['on', '0', '0']], query);
      await failsWith('TEMPER_DATABASE_QUERY_FAILED', ask('DELETE FROM orders', { user: 'writer' }), /read-only/);
    }
  });

  it('a role with more than privileges on data is refused by its name', async () => {
    for (const [user, words] of [
      ['root', /its role "root" is SUPERUSER/],
      ['grows', /its role can become "root", which is SUPERUSER/],
      ['starts', /its role can become "pg_execute_server_program"/],
      ['names', /its role "names" is CREATEROLE/],
    ] as const) {
      await failsWith('TEMPER_DATABASE_ROLE_REFUSED', ask('SELECT 1', { user }), words);
    }
  });

  it('a slow query, a lock and a transfer without an answer end in time', async () => {
    await failsWith(
      'TEMPER_DATABASE_QUERY_FAILED',
      ask('SELECT pg_sleep(60)', { timeoutMs: 3_500 }),
      /timeout|too long/,
    );
    await failsWith('TEMPER_DATABASE_QUERY_FAILED', ask('COPY orders TO STDOUT', { timeoutMs: 6_000 }), /./);
    const started = ask('SELECT count(*) FROM generate_series(1, 100000000000)', { timeoutMs: 3_000 });
    await failsWith('TEMPER_DATABASE_QUERY_FAILED', started, /timeout|too long/);
  });

  it('a server that cannot be trusted or reached gives no result, and no error has the password', async () => {
    await failsWith(
      'TEMPER_DATABASE_UNAVAILABLE',
      ask('SELECT 1', { password: 'wrong-9876' }),
      /password authentication failed/,
    );
    await failsWith(
      'TEMPER_DATABASE_UNAVAILABLE',
      ask('SELECT 1', { host: '127.0.0.1' }),
      /ERR_TLS_CERT_ALTNAME_INVALID|altnames/,
    );
    const other = await startPostgres();
    await failsWith(
      'TEMPER_DATABASE_UNAVAILABLE',
      ask('SELECT 1', { certificate: other.certificate }),
      /certificate|SELF_SIGNED/i,
    );
    await other[Symbol.asyncDispose]();
  });

  it('queries of one agent at the same time wait for its share of the connections', async () => {
    const one = database({ maxConnections: 2 });
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' };
    const count = "SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'reader'";
    const results = await Promise.all(
      Array.from({ length: 4 }, () => one.query({ query: count, parameters: [], maxRows: 1 }, 'team-a/one', op)),
    );
    for (const { rows } of results) assert.ok(Number(rows[0]?.[0]) <= 2, JSON.stringify(rows));
  });
});
