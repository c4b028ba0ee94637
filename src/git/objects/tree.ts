import { gitFailure } from '../failure.ts';
import type { GitObject } from './object-id.ts';

export interface TreeEntry {
  /** As Git writes it, such as `100644`. Kept as it is in entries that Temper does not change. */
  readonly mode: string;
  /** Latin-1, one character per byte: Git names have no encoding. */
  readonly name: string;
  readonly id: string;
}

const TREE_MODE = '40000';
const FILE_MODES: ReadonlySet<string> = new Set(['100644', '100755', '100664']);
export const NEW_FILE_MODE = '100644';
const ID_BYTES = 20;

export function isTree({ mode }: TreeEntry): boolean {
  return mode === TREE_MODE;
}

/** Neither a link, nor a submodule, nor a folder. */
export function isRegularFile({ mode }: TreeEntry): boolean {
  return FILE_MODES.has(mode);
}

export function folderEntry(name: string, id: string): TreeEntry {
  return { mode: TREE_MODE, name, id };
}

/** The entries of a tree. Throws for a tree that Git would not write: a name twice or out of order could have two readings. */
export function parseTree(content: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = [];
  const names = new Set<string>();
  let offset = 0;
  while (offset < content.length) {
    const end = content.indexOf(0, offset);
    if (end === -1 || end + 1 + ID_BYTES > content.length) throw malformed();
    const [, mode, name] = /^([1-7][0-7]{4,5}) ([^/]+)$/s.exec(content.toString('latin1', offset, end)) ?? [];
    if (mode === undefined || name === undefined) throw malformed();
    const entry = { mode, name, id: content.toString('hex', end + 1, end + 1 + ID_BYTES) };
    const before = entries.at(-1);
    if (names.has(name) || (before !== undefined && compare(before, entry) >= 0)) throw malformed();
    names.add(name);
    entries.push(entry);
    offset = end + 1 + ID_BYTES;
  }
  return entries;
}

/** A tree of these entries, in Git's order. */
export function treeObject(entries: readonly TreeEntry[]): GitObject {
  const parts = entries
    .toSorted(compare)
    .flatMap(({ mode, name, id }) => [Buffer.from(`${mode} ${name}\0`, 'latin1'), Buffer.from(id, 'hex')]);
  return { type: 'tree', content: Buffer.concat(parts) };
}

/** Git sorts by bytes, and a folder as if its name ended with a slash. */
function compare(one: TreeEntry, other: TreeEntry): number {
  const [first, second] = [sortKey(one), sortKey(other)];
  return first === second ? 0 : first < second ? -1 : 1;
}

function sortKey(entry: TreeEntry): string {
  return isTree(entry) ? `${entry.name}/` : entry.name;
}

function malformed(): Error {
  return gitFailure('the server sent a folder that is not in the form of Git');
}
