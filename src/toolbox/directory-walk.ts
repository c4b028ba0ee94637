import type { Dirent } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno } from '../lib/errors.ts';
import { protectedFolderCheck } from '../tools/host/host-files.ts';
import { isWithin } from './path-resolution.ts';

export interface DirectoryEntry {
  /** Path relative to the starting folder, with `/` as the separator. */
  path: string;
  type: 'file' | 'folder' | 'link' | 'other';
  bytes: number;
}

/** Limit of visited entries, so that a huge tree gives an incomplete result instead of a hang. */
const MAX_VISITED = 20_000;
const MAX_DEPTH = 32;

/**
 * Lists the entries below a folder in order of name, each folder before its contents. A link to a file below the starting folder
 * is listed as that file; any other link is listed as a link and never followed. `closed` folders are not listed.
 * `complete` is false when a limit cut the list.
 */
export async function walkDirectory(
  folder: string,
  recursive: boolean,
  signal: AbortSignal,
  closed: readonly string[] = [],
): Promise<{ found: DirectoryEntry[]; complete: boolean }> {
  const isClosed = await protectedFolderCheck(closed);
  const found: DirectoryEntry[] = [];
  const pending: { absolute: string; prefix: string; depth: number }[] = [{ absolute: folder, prefix: '', depth: 1 }];
  let complete = true;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    signal.throwIfAborted();
    const deeper: typeof pending = [];
    for (const entry of await entriesOf(next.absolute)) {
      if (found.length >= MAX_VISITED) return { found, complete: false };
      const absolute = join(next.absolute, entry.name);
      if (isClosed(absolute) || isVolumeVersion(entry.name)) continue;
      const path = next.prefix === '' ? entry.name : `${next.prefix}/${entry.name}`;
      const linkedSize = entry.isSymbolicLink() ? await linkedFileSize(absolute, folder, isClosed) : undefined;
      if (linkedSize !== undefined) found.push({ path, type: 'file', bytes: linkedSize });
      else found.push({ path, type: typeOf(entry), bytes: entry.isFile() ? await sizeOf(absolute) : 0 });
      if (!recursive || !entry.isDirectory()) continue;
      if (next.depth >= MAX_DEPTH) complete = false;
      else deeper.push({ absolute, prefix: path, depth: next.depth + 1 });
    }
    pending.push(...deeper.toReversed());
  }
  return { found, complete };
}

/** Whether the name is one of the folders in which Kubernetes stores the versions of mounted files. The visible files are links beside these folders. */
function isVolumeVersion(name: string): boolean {
  return name.startsWith('..');
}

/** The size of the target file of a link, if it is below the folder. */
async function linkedFileSize(
  absolute: string,
  folder: string,
  isClosed: (absolute: string) => boolean,
): Promise<number | undefined> {
  const real = await realpath(absolute).catch(() => undefined);
  if (real === undefined || isClosed(real) || !isWithin(folder, real)) return undefined;
  const stats = await lstat(real).catch(() => undefined);
  return stats?.isFile() === true ? stats.size : undefined;
}

async function entriesOf(absolute: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(absolute, { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    // Deleted since its parent was read, or not readable; the entry itself is in the list.
    if (hasErrno(error, 'ENOENT') || hasErrno(error, 'EACCES')) return [];
    throw error;
  }
}

async function sizeOf(absolute: string): Promise<number> {
  try {
    return (await lstat(absolute)).size;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

function typeOf(entry: Dirent): DirectoryEntry['type'] {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}
