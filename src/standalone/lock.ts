import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TemperError } from '../lib/errors.ts';

/** SQLite's "the database is locked". */
const SQLITE_BUSY = 5;

export interface StateLock {
  release(): void;
}

/**
 * Holds the state folder for this process. The kernel keeps the lock (SQLite's exclusive lock on `lock.db`), so that it is gone
 * the moment its process is, however that ended. Throws TEMPER_STATE_LOCKED with the holder's process id.
 */
export async function lockState(folder: string): Promise<StateLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const holder = join(folder, 'lock.json');
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(folder, 'lock.db'));
    database.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE;');
  } catch (error) {
    database?.close();
    if (!isBusy(error)) throw error;
    throw new TemperError(
      'TEMPER_STATE_LOCKED',
      `${folder} is in use by ${await describeHolder(holder)}; wait for it, or give another --state`,
      {
        retry: 'backoff',
      },
    );
  }
  const held = database;
  await writeFile(holder, `${JSON.stringify({ pid: process.pid })}\n`, { mode: 0o600 });
  return { release: () => held.close() };
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}

async function describeHolder(file: string): Promise<string> {
  try {
    const { pid } = JSON.parse(await readFile(file, 'utf8')) as { pid?: unknown };
    return typeof pid === 'number' ? `process ${pid}` : 'another process';
  } catch {
    // The holder has not written its id yet, or is gone: the lock itself is what counts.
    return 'another process';
  }
}
