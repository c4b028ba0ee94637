import type { Dirent } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno } from '../lib/errors.ts';
import { closedFolders } from '../tools/host-files.ts';
import { isWithin } from './places.ts';

export interface Found {
  /** Below the folder the walk began in, with `/`. */
  path: string;
  type: 'file' | 'folder' | 'link' | 'other';
  bytes: number;
}

/** Most entries looked at, so that a huge tree ends in a note and not in a hang. */
const MAXIMUM_VISITED = 20_000;
const MAXIMUM_DEPTH = 32;

/**
 * What lies below a folder, in order of name, folders before what is in them. A link to a file below it is that file, any other link is
 * named and never followed, `closed` folders are not even named.
 */
export async function walk(
  folder: string,
  recursive: boolean,
  signal: AbortSignal,
  closed: readonly string[] = [],
): Promise<{ found: Found[]; complete: boolean }> {
  const isClosed = await closedFolders(closed);
  const found: Found[] = [];
  const waiting: { place: string; below: string; depth: number }[] = [{ place: folder, below: '', depth: 1 }];
  let complete = true;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    signal.throwIfAborted();
    const deeper: typeof waiting = [];
    for (const entry of await entriesOf(next.place)) {
      if (found.length >= MAXIMUM_VISITED) return { found, complete: false };
      const place = join(next.place, entry.name);
      if (isClosed(place) || isBookkeeping(entry.name)) continue;
      const path = next.below === '' ? entry.name : `${next.below}/${entry.name}`;
      const linked = entry.isSymbolicLink() ? await fileBehind(place, folder, isClosed) : undefined;
      if (linked !== undefined) found.push({ path, type: 'file', bytes: linked });
      else found.push({ path, type: typeOf(entry), bytes: entry.isFile() ? await sizeOf(place) : 0 });
      if (!recursive || !entry.isDirectory()) continue;
      if (next.depth >= MAXIMUM_DEPTH) complete = false;
      else deeper.push({ place, below: path, depth: next.depth + 1 });
    }
    waiting.push(...deeper.toReversed());
  }
  return { found, complete };
}

/** Where Kubernetes keeps the versions of mounted files; what is to be seen of them are links beside it. */
function isBookkeeping(name: string): boolean {
  return name.startsWith('..');
}

/** The size of the file a link leads to, when that lies below the folder. */
async function fileBehind(
  place: string,
  folder: string,
  isClosed: (place: string) => boolean,
): Promise<number | undefined> {
  const real = await realpath(place).catch(() => undefined);
  if (real === undefined || isClosed(real) || !isWithin(folder, real)) return undefined;
  const stats = await lstat(real).catch(() => undefined);
  return stats?.isFile() === true ? stats.size : undefined;
}

async function entriesOf(place: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(place, { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    // Gone or closed to us since its parent was read; the entry itself is in the list.
    if (hasErrno(error, 'ENOENT') || hasErrno(error, 'EACCES')) return [];
    throw error;
  }
}

async function sizeOf(place: string): Promise<number> {
  try {
    return (await lstat(place)).size;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

function typeOf(entry: Dirent): Found['type'] {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}
