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
 * Locks the state folder for this process. The lock is a kernel lock (SQLite's exclusive lock on `lock.db`), so it is released as
 * soon as the process ends, also after a crash. Throws TEMPER_STATE_LOCKED with the process id of the holder.
 */
export async function lockState(folder: string): Promise<StateLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const holderFile = join(folder, 'lock.json');
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(folder, 'lock.db'));
    database.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE;');
  } catch (error) {
    database?.close();
    if (!isBusy(error)) throw error;
    throw new TemperError(
      'TEMPER_STATE_LOCKED',
      `${folder} is in use by ${await describeHolder(holderFile)}; wait until it ends, or use another --state`,
      {
        retry: 'backoff',
      },
    );
  }
  const locked = database;
  await writeFile(holderFile, `${JSON.stringify({ pid: process.pid })}\n`, { mode: 0o600 });
  return { release: () => locked.close() };
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}

async function describeHolder(file: string): Promise<string> {
  try {
    const { pid } = JSON.parse(await readFile(file, 'utf8')) as { pid?: unknown };
    return typeof pid === 'number' ? `process ${pid}` : 'another process';
  } catch {
    // The holder has not written its process id yet, or has ended. Only the lock itself is authoritative.
    return 'another process';
  }
}
