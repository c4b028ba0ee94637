import { spawn } from 'node:child_process';
import { onAbort } from '../../../lib/async/abort.ts';
import { readBytes } from '../../../lib/async/read-body.ts';
import { withTimeout } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { type Json, parseUntrustedJson } from '../../../lib/json.ts';
import { type Database, SQL_LIMITS, type SqlQuestion, type SqlResult } from '../database.ts';
import { queryFailed, unavailable } from '../errors.ts';
import { QueryShares } from '../query-shares.ts';
import { Rows } from '../rows.ts';
import { type ReaderAnswer, readerProgram, type ReaderRequest } from './reader-program.ts';

export interface SqliteFile {
  name: string;
  description?: string;
  /** Absolute path. */
  file: string;
}

const MAX_PROCESSES = 2;
const MAX_ANSWER_BYTES = SQL_LIMITS.receivedBytes;

/** A SQLite file. Each query runs in a process of its own: one step of a statement may take any time, and nothing but the end of its process stops it. */
export function sqliteDatabase({ name, description, file }: SqliteFile, clock: Clock): Database {
  const shares = new QueryShares(MAX_PROCESSES);
  return {
    name,
    kind: 'SQLite',
    ...(description === undefined ? {} : { description }),
    query: (question, agent, op) =>
      withTimeout(op, clock, SQL_LIMITS.timeoutMs, async ({ signal }) => {
        using _share = await shares.take(agent, signal);
        const answer = await ask(requestOf(question, file), signal);
        if (signal.aborted) throw queryFailed('it took too long, or the call ended');
        if (answer === undefined)
          throw unavailable(name, 'its process ended without an answer, perhaps for want of memory');
        if ('error' in answer) throw queryFailed(answer.error);
        return resultOf(answer, question);
      }),
  };
}

function requestOf({ query, parameters, maxRows }: SqlQuestion, file: string): ReaderRequest {
  return {
    file,
    query,
    parameters: parameters.map((value) => (typeof value === 'boolean' ? Number(value) : value)),
    maxRows,
    maxColumns: SQL_LIMITS.columns,
    maxCharacters: SQL_LIMITS.resultCharacters * 4,
  };
}

/** The answer of a process; undefined when it ended without one. */
async function ask(request: ReaderRequest, signal: AbortSignal): Promise<ReaderAnswer | undefined> {
  const confined = [
    '--permission',
    `--allow-fs-read=${request.file}`,
    '--max-old-space-size=64',
    '--disable-warning=ExperimentalWarning',
  ];
  const child = spawn(process.execPath, [...confined, '-e', `(${readerProgram.toString()})()`], {
    env: {},
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()).once('error', () => resolve()));
  using _cancellation = onAbort(signal, () => child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined).end(JSON.stringify(request));
  try {
    const bytes = await readBytes(child.stdout, MAX_ANSWER_BYTES, () =>
      queryFailed('its result is too large; ask for fewer or smaller rows'),
    );
    return bytes.length === 0 ? undefined : (parseUntrustedJson(bytes.toString('utf8')) as unknown as ReaderAnswer);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

function resultOf(answer: Exclude<ReaderAnswer, { error: string }>, { maxRows }: SqlQuestion): SqlResult {
  const rows = new Rows(maxRows);
  for (const row of answer.rows) rows.add(row as Json[]);
  return { columns: answer.columns, rows: rows.values, truncated: answer.hasMore || rows.isIncomplete };
}
