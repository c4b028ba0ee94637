import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const DATA = join(import.meta.dirname, '../../quickstart/data');
const COLUMNS =
  'order_id TEXT, date TEXT, region TEXT, customer TEXT, product TEXT, quantity INTEGER, unit_price REAL, status TEXT';

/** The fields of one line of CSV. */
function fieldsOf(line: string): string[] {
  const found = line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g);
  return [...found].map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain);
}

/** Makes a SQLite file with the orders of the quick start. */
export async function makeDatabase(file: string): Promise<void> {
  const database = new DatabaseSync(file);
  database.exec(`DROP TABLE IF EXISTS orders; CREATE TABLE orders (${COLUMNS}); BEGIN`);
  const insert = database.prepare('INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
  for (const name of (await readdir(DATA)).sort()) {
    const [, ...lines] = (await readFile(join(DATA, name), 'utf8')).trimEnd().split('\n');
    for (const line of lines) insert.run(...fieldsOf(line));
  }
  database.exec('COMMIT');
  database.close();
}
