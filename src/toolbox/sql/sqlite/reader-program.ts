import type { DatabaseSync as Database } from 'node:sqlite';

export interface ReaderRequest {
  file: string;
  query: string;
  parameters: (string | number | null)[];
  maxRows: number;
  maxColumns: number;
  maxCharacters: number;
}

export type ReaderAnswer =
  | { columns: { name: string; type: string }[]; rows: (string | number | null)[][]; hasMore: boolean }
  | { error: string };

/**
 * The program of the process that reads a SQLite database: one request on standard input, one answer on standard output. Its text is what
 * that process runs, so it uses nothing from outside.
 */
export function readerProgram(): void {
  const { DatabaseSync, constants } = process.getBuiltinModule('node:sqlite');
  const { readFileSync, writeSync } = process.getBuiltinModule('node:fs');
  const answer = (value: ReaderAnswer): void => {
    const bytes = Buffer.from(JSON.stringify(value));
    for (let sent = 0; sent < bytes.length; ) sent += writeSync(1, bytes, sent);
  };
  const plain = (value: unknown): string | number | null => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    return value === null || value === undefined ? null : (value as string);
  };
  const request = JSON.parse(readFileSync(0, 'utf8')) as ReaderRequest;
  const MAX_VALUE_BYTES = 4_000_000;
  const open = (): Database => {
    const database = new DatabaseSync(request.file, {
      readOnly: true,
      allowExtension: false,
      timeout: 2_000,
      limits: { length: MAX_VALUE_BYTES, attach: 0, column: request.maxColumns, triggerDepth: 10 },
    });
    database.exec(
      'PRAGMA hard_heap_limit = 67108864; PRAGMA temp_store = MEMORY; PRAGMA query_only = ON; PRAGMA trusted_schema = OFF',
    );
    const allowed = new Set([
      constants.SQLITE_SELECT,
      constants.SQLITE_READ,
      constants.SQLITE_FUNCTION,
      constants.SQLITE_RECURSIVE,
    ]);
    database.setAuthorizer((action) => (allowed.has(action) ? constants.SQLITE_OK : constants.SQLITE_DENY));
    return database;
  };
  try {
    const database = open();
    const statement = database.prepare(request.query);
    const rest = request.query.slice(statement.sourceSQL.length);
    // A comment without an end is one, too. What is left after comments, spaces and empty statements is another statement.
    if (rest.replace(/--[^\n]*|\/\*[^]*?(?:\*\/|$)|[\s;]/g, '') !== '') throw new Error('a call takes one statement');
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    const columns = statement.columns().map(({ name, type }) => ({ name, type: type ?? '' }));
    const rows: (string | number | null)[][] = [];
    let characters = 0;
    let hasMore = false;
    for (const values of statement.iterate(...request.parameters) as Iterable<unknown>) {
      const row = (values as unknown[]).map(plain);
      characters += JSON.stringify(row).length;
      hasMore = rows.length >= request.maxRows || characters > request.maxCharacters;
      if (hasMore) break;
      rows.push(row);
    }
    answer({ columns, rows, hasMore });
  } catch (error) {
    answer({ error: error instanceof Error ? error.message : 'unknown' });
  }
}
