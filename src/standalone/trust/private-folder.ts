import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { join, relative } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { unusable } from '../state-folder.ts';

const ROOT_UID = 0;
/** Write permission of the group and of others. */
const WRITABLE_BY_OTHERS = 0o022;

/** What is known of one file or folder. */
export interface FoundEntry {
  path: string;
  kind: 'file' | 'folder' | 'link' | 'other';
  uid: number;
  mode: number;
}

export type EntryProblem = 'special' | 'owner' | 'writable';

/** Why an entry cannot belong to a state folder of this user; undefined when it can. Without `uid` its owner and mode do not matter. */
export function entryProblem(
  { kind, uid: owner, mode }: FoundEntry,
  uid: number | undefined,
): EntryProblem | undefined {
  if (kind === 'link' || kind === 'other') return 'special';
  if (uid === undefined) return undefined;
  if (owner !== uid && owner !== ROOT_UID) return 'owner';
  return (mode & WRITABLE_BY_OTHERS) === 0 ? undefined : 'writable';
}

/**
 * The files of a state folder, as paths relative to it. Throws TEMPER_STATE_UNTRUSTED when the folder, or anything in it, belongs to
 * another user, is writable by others, or is neither a file nor a folder: no process of Temper makes that. Root counts as the user.
 */
export function privateFiles(folder: string, uid: number | undefined = process.geteuid?.()): string[] {
  const files: string[] = [];
  for (const entry of entriesOf(folder)) {
    const problem = entryProblem(entry, uid);
    if (problem !== undefined) throw untrustedEntry(folder, entry, problem, uid);
    if (entry.kind === 'file') files.push(relative(folder, entry.path));
  }
  return files;
}

/** Throws TEMPER_STATE_UNTRUSTED when a member of the folder is a link or a special file. To be read, a folder may belong to any user. */
export function assertPlainFiles(folder: string): void {
  for (const entry of entriesOf(folder)) {
    if (entryProblem(entry, undefined) !== undefined) throw untrustedEntry(folder, entry, 'special', undefined);
  }
}

/** As `privateFiles`, for the folder itself and its direct members. Call it before the lock is opened, which is one of them. */
export function assertPrivateRoot(folder: string, uid: number | undefined = process.geteuid?.()): void {
  for (const path of [folder, ...namesIn(folder).map((name) => join(folder, name))]) {
    const entry = inspect(path);
    const problem = entry === undefined ? undefined : entryProblem(entry, uid);
    if (entry !== undefined && problem !== undefined) throw untrustedEntry(folder, entry, problem, uid);
  }
}

/** The folder and everything below it, each folder before its members. Follows no link. */
function* entriesOf(folder: string): Generator<FoundEntry> {
  const open = [folder];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const entry = inspect(path);
    if (entry === undefined) continue;
    yield entry;
    if (entry.kind === 'folder') for (const name of namesIn(path)) open.push(join(path, name));
  }
}

/** Undefined when it has vanished: another process may replace files meanwhile. */
function inspect(path: string): FoundEntry | undefined {
  try {
    const stats = lstatSync(path);
    return { path, kind: kindOf(stats), uid: stats.uid, mode: stats.mode & 0o7777 };
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw unusable(path, error);
  }
}

function kindOf(stats: Stats): FoundEntry['kind'] {
  if (stats.isDirectory()) return 'folder';
  if (stats.isSymbolicLink()) return 'link';
  return stats.isFile() ? 'file' : 'other';
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw unusable(folder, error);
  }
}

function untrustedEntry(
  folder: string,
  { path, uid: owner, mode, kind }: FoundEntry,
  problem: EntryProblem,
  uid: number | undefined,
): TemperError {
  const where = printable(path, 500);
  const whole = shellWord(folder);
  const texts: Record<EntryProblem, string> = {
    special: `${where} is ${kind === 'link' ? 'a symbolic link' : 'a special file'}, which could lead a run to files outside of its state; ${path === folder ? 'name the folder that it leads to with --state' : `remove it (rm ${shellWord(path)}), or use another --state`}`,
    owner: `${where} belongs to user id ${owner} and not to you (${uid}), so that user decides what your agents trust; use another --state, or take the folder over when you trust its content: sudo chown -R ${uid} ${whole}`,
    writable: `other users may write to ${where} (mode ${mode.toString(8).padStart(4, '0')}), so they decide what your agents trust; use another --state, or forbid it when you trust the content: chmod -R go-w ${whole}`,
  };
  return new TemperError('TEMPER_STATE_UNTRUSTED', texts[problem]);
}

/** A path as one word of a POSIX shell, safe to show. */
function shellWord(path: string): string {
  const shown = printable(path, 500);
  return /^[\w./@:+-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`;
}
