import { existsSync, lstatSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { createStateFolder, unusable } from './state-folder.ts';
import { assertPrivateRoot } from './trust/private-folder.ts';

/** SQLite's "the database is locked". */
const SQLITE_BUSY = 5;
/** Waits out a process that only tests the lock. */
const BUSY_TIMEOUT_MS = 250;

/** The commands that need a state folder for themselves. */
export type StateCommand =
  | 'temper run'
  | 'temper sessions close'
  | 'temper judges --resume'
  | 'temper audit --adopt'
  | 'temper tool import';

export interface StateLock {
  release(): void;
}

/**
 * Locks the state folder for this process. The lock is a kernel lock (SQLite's exclusive lock on `lock.db`), so it is released as
 * soon as the process ends, also after a crash. `command` is shown to those who wait. Throws TEMPER_STATE_LOCKED with that of the holder,
 * TEMPER_STATE_UNUSABLE when the folder cannot be created or written, and TEMPER_STATE_UNTRUSTED when other users may change it.
 */
export async function lockState(folder: string, command: StateCommand): Promise<StateLock> {
  await createStateFolder(folder);
  assertPrivateRoot(folder);
  assertLockFile(folder);
  const holderFile = join(folder, 'lock.json');
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(folder, 'lock.db'), { timeout: BUSY_TIMEOUT_MS });
    database.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE;');
  } catch (error) {
    database?.close();
    if (!isBusy(error)) throw error;
    throw locked(folder, command, await describeHolder(holderFile));
  }
  const held = database;
  try {
    await writeFile(holderFile, `${JSON.stringify({ pid: process.pid, command })}\n`, { mode: 0o600 });
  } catch (error) {
    held.close();
    throw unusable(folder, error);
  }
  return { release: () => held.close() };
}

/** Does a process hold the lock of this state folder? The answer may be outdated as soon as it is given. */
export function isStateLocked(folder: string): boolean {
  const file = join(folder, 'lock.db');
  if (!existsSync(file)) return false;
  assertLockFile(folder);
  const database = new DatabaseSync(file);
  try {
    database.exec('BEGIN EXCLUSIVE; ROLLBACK;');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    database.close();
  }
}

/**
 * The lock file of Temper is empty and has no journal. SQLite would read another database, and play back a journal that lies beside it,
 * before anything is known about the folder.
 */
function assertLockFile(folder: string): void {
  const stats = lstatSync(join(folder, 'lock.db'), { throwIfNoEntry: false });
  const journal = ['lock.db-journal', 'lock.db-wal', 'lock.db-shm'].find((name) => existsSync(join(folder, name)));
  if ((stats === undefined || (stats.isFile() && stats.size === 0)) && journal === undefined) return;
  throw new TemperError(
    'TEMPER_STATE_CORRUPT',
    `${printable(join(folder, journal ?? 'lock.db'), 500)} is not the lock of a state folder; remove it when no run uses the folder`,
  );
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}

function locked(folder: string, command: StateCommand, holder: string): TemperError {
  const again = command === 'temper run' ? 'or use another --state' : `then repeat ${command}`;
  return new TemperError(
    'TEMPER_STATE_LOCKED',
    `${printable(folder, 500)} is in use by ${holder}; end that process or wait until it ends, ${again}`,
    { retry: 'backoff' },
  );
}

async function describeHolder(file: string): Promise<string> {
  try {
    const { pid, command } = JSON.parse(await readFile(file, 'utf8')) as { pid?: unknown; command?: unknown };
    const what = typeof command === 'string' ? ` (${printable(command, 80)})` : '';
    return typeof pid === 'number' ? `process ${pid}${what}` : 'another process';
  } catch {
    // The holder has not written its process id yet, or has ended. Only the lock itself is authoritative.
    return 'another process';
  }
}
