import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';

export type SqlParameter = string | number | boolean | null;

/** One statement, with its parameters beside it. */
export interface SqlQuestion {
  query: string;
  parameters: readonly SqlParameter[];
  maxRows: number;
}

export interface SqlResult {
  columns: { name: string; type: string }[];
  rows: Json[][];
  /** There are more rows, or a value was cut. */
  truncated: boolean;
}

/** A database that the platform or the user configured, for reading. */
export interface Database {
  name: string;
  kind: 'PostgreSQL' | 'SQLite';
  /** What it contains, for the model. */
  description?: string;
  /** Throws TEMPER_DATABASE_UNAVAILABLE, TEMPER_DATABASE_QUERY_FAILED, TEMPER_DATABASE_ROLE_REFUSED and TEMPER_RATE_LIMITED. */
  query(question: SqlQuestion, agent: string, op: CallOptions): Promise<SqlResult>;
}

/** Of one query. */
export const SQL_LIMITS = {
  timeoutMs: 30_000,
  /** What a server sends, of which a row that is too large is a part. */
  receivedBytes: 8 * 1_048_576,
  /** Of the rows as JSON. */
  resultCharacters: 200_000,
  valueCharacters: 20_000,
  columns: 200,
} as const;
