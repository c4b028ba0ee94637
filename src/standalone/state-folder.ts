import { constants } from 'node:fs';
import { access, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasErrno, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

/** Members of a state folder; every state folder that is not empty has at least one of them. */
const MEMBERS: readonly string[] = ['lock.db', 'lock.json', 'agents', 'audit', 'imports', 'sessions', 'tools'];

/** Members of every state folder that a process has written to; unlike `agents` and `tools`, hardly any project has them. */
const MARKERS: readonly string[] = ['lock.db', 'lock.json', 'audit', 'imports', 'sessions'];

/**
 * Creates the state folder and its parents. Throws TEMPER_STATE_UNUSABLE when that is not possible, when the folder may not be
 * read and written, or when it has other files.
 */
export async function createStateFolder(folder: string): Promise<void> {
  try {
    await createFolder(folder, 0o700);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    await assertOwnFolder(folder);
  } catch (error) {
    throw unusable(folder, error);
  }
}

/** Throws TEMPER_STATE_NOT_FOUND when the folder does not exist or is not a state folder, TEMPER_STATE_UNUSABLE when it may not be read. */
export async function assertStateFolder(folder: string): Promise<void> {
  let entries: string[];
  try {
    entries = await readdir(folder);
  } catch (error) {
    if (!hasErrno(error, 'ENOENT')) throw unusable(folder, error);
    throw notFound(`the state folder ${printable(folder)} does not exist`);
  }
  // A run that is killed at its start leaves an empty folder.
  if (entries.length > 0 && !entries.some((entry) => MEMBERS.includes(entry)))
    throw notFound(`${printable(folder)} is not a state folder`);
}

/** A folder of other files, such as the project itself, would be filled with the files of the state. */
async function assertOwnFolder(folder: string): Promise<void> {
  const entries = await readdir(folder);
  if (entries.length === 0 || entries.some((entry) => MARKERS.includes(entry))) return;
  throw new Error('it has other files and is not a state folder');
}

/** Creates a folder and its parents one after the other, because Node's recursive `mkdir` never returns below /proc. */
export async function createFolder(folder: string, mode?: number): Promise<void> {
  if (await isFolder(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) await createFolder(parent, mode);
  await mkdir(folder, { mode }).catch((error: unknown) => {
    // Another process may have created it meanwhile.
    if (!hasErrno(error, 'EEXIST')) throw error;
  });
}

/** False when nothing exists there. Throws for a file. */
async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return false;
    throw error;
  }
  throw new Error(`${printable(path)} is not a folder`);
}

function notFound(problem: string): TemperError {
  return new TemperError(
    'TEMPER_STATE_NOT_FOUND',
    `${problem}; give the folder of a run with --state, or start a run with temper run`,
  );
}

/** The error for a folder that cannot be created, read or written. */
export function unusable(folder: string, cause: unknown): TemperError {
  return new TemperError(
    'TEMPER_STATE_UNUSABLE',
    `${printable(folder)} cannot be used as the state folder: ${folderProblem(cause)}; give another one with --state`,
    { cause },
  );
}

const REASONS = [
  ['EACCES', 'it may not be read and written'],
  ['EPERM', 'it may not be read and written'],
  ['EROFS', 'its file system is read-only'],
  ['ENOTDIR', 'it, or a part of its path, is not a folder'],
  ['ENOENT', 'the file system does not allow new folders there'],
  ['ENOSPC', 'the file system is full'],
] as const;

/** Why a folder cannot be created or used, in words. */
export function folderProblem(error: unknown): string {
  return REASONS.find(([errno]) => hasErrno(error, errno))?.[1] ?? printable(messageOf(error, 300));
}
