import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import type { SqlParameter, SqlResult } from '../database.ts';
import { sqliteDatabase } from './sqlite-database.ts';

describe('a SQLite database', () => {
  let folder: string;
  let file: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-sqlite-'));
    file = join(folder, 'shop.db');
    const database = new DatabaseSync(file);
    database.exec(`CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL, note TEXT, photo BLOB, large INTEGER);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO orders SELECT i, i * 1.5, 'order ' || i, x'00ff', 9007199254740993 FROM n;
      CREATE TRIGGER log AFTER INSERT ON orders BEGIN DELETE FROM orders; END;`);
    database.close();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const ask = (
    query: string,
    parameters: SqlParameter[] = [],
    { maxRows = 10, timeoutMs = 60_000 } = {},
  ): Promise<SqlResult> => {
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + timeoutMs, key: 'test' };
    return sqliteDatabase({ name: 'shop', file }, systemClock).query({ query, parameters, maxRows }, 'team-a/a', op);
  };
  const failed = (work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, 'TEMPER_DATABASE_QUERY_FAILED'), String(error));
      assert.match(error.message, words);
      return true;
    });

  it('a query returns columns and rows in the forms of JSON, with parameters beside the statement', async () => {
    assert.deepEqual(
      await ask('SELECT id, total, note, photo, large, NULL AS n FROM orders WHERE id = ? AND note = ?', [
        7,
        'order 7',
      ]),
      {
        columns: [
          { name: 'id', type: 'INTEGER' },
          { name: 'total', type: 'REAL' },
          { name: 'note', type: 'TEXT' },
          { name: 'photo', type: 'BLOB' },
          { name: 'large', type: 'INTEGER' },
          { name: 'n', type: '' },
        ],
        rows: [[7, 10.5, 'order 7', 'AP8=', '9007199254740993', null]],
        truncated: false,
      },
    );
    const found = await ask('SELECT id FROM orders ORDER BY id;', [], { maxRows: 2 });
    assert.deepEqual([found.rows, found.truncated], [[[1], [2]], true]);
    assert.deepEqual((await ask('SELECT ?', [true])).rows, [[1]]);
  });

  it('comments and empty statements may follow a statement, and another statement may not', async () => {
    for (const rest of [
      '; -- done',
      ';\n-- a; SELECT 2\n',
      '; /* a; */ -- b',
      '; /* SELECT 2',
      ';;',
      ' -- done',
      ';\n',
    ])
      assert.deepEqual((await ask(`SELECT 1${rest}`)).rows, [[1]], rest);
    for (const rest of [
      '; -- a\nSELECT 2',
      '; /* a */ SELECT 2',
      '; /* -- */ SELECT 2 -- b',
      "; SELECT '-- a'",
      '; - 1',
    ])
      await failed(ask(`SELECT 1${rest}`), /a call takes one statement/);
  });

  it('a statement that does more than read is refused, and changes neither the file nor its folder', async () => {
    const before = await readFile(file);
    for (const query of [
      'DELETE FROM orders',
      'INSERT INTO orders (id) VALUES (0)',
      'CREATE TABLE t (a)',
      'CREATE TEMP TABLE t (a)',
      'PRAGMA query_only = OFF',
      'PRAGMA writable_schema = ON',
      `ATTACH '${join(folder, 'other.db')}' AS other`,
      `VACUUM INTO '${join(folder, 'copy.db')}'`,
      'BEGIN',
      "SELECT load_extension('/tmp/x.so')",
      'SELECT 1; DELETE FROM orders',
      "SELECT writefile('/tmp/x', 'x')",
      'EXPLAIN DELETE FROM orders',
      'SELEC 1',
    ]) {
      await failed(ask(query), /./);
    }
    assert.deepEqual(await readFile(file), before);
    assert.deepEqual(await readdir(folder), ['shop.db']);
  });

  it('a query without an end, a huge value and a huge result end', async () => {
    const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
    await failed(ask(endless, [], { timeoutMs: 1_500 }), /too long/);
    await failed(ask('SELECT hex(zeroblob(100000000))'), /too big|memory/);
    const wide = await ask('SELECT hex(zeroblob(5000)) FROM orders', [], { maxRows: 1_000 });
    assert.ok(wide.truncated && wide.rows.length > 5 && wide.rows.length < 30, String(wide.rows.length));
    const cut = await ask('SELECT hex(zeroblob(50000))');
    assert.ok(cut.truncated && JSON.stringify(cut.rows).length < 21_000);
  });

  it('a file that is no database is refused', async () => {
    const other = sqliteDatabase({ name: 'other', file: join(folder, 'missing.db') }, systemClock);
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' };
    await failed(other.query({ query: 'SELECT 1', parameters: [], maxRows: 1 }, 'a', op), /unable to open/);
  });
});
