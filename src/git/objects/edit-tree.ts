import { printable } from '../../lib/printable.ts';
import { gitFailure } from '../failure.ts';
import { type GitObject, objectId } from './object-id.ts';
import { folderEntry, isRegularFile, isTree, NEW_FILE_MODE, type TreeEntry, treeObject } from './tree.ts';

/** One file of a commit, compared with its parent. */
export interface TreeChange {
  readonly path: string;
  /** Undefined: the file is removed. */
  readonly text: string | undefined;
  /** The id of the file in the parent; undefined: it has none. */
  readonly previous: string | undefined;
}

export interface EditedTree {
  /** The id of the new tree of the commit. */
  readonly id: string;
  /** Its new folders and files, each once. */
  readonly objects: readonly GitObject[];
}

/** The entries of a folder by its id. */
export type ReadTree = (id: string) => readonly TreeEntry[];

interface Change {
  readonly change: TreeChange;
  /** What is left of the path. */
  readonly segments: readonly string[];
}

/**
 * Applies the changes to a tree. Throws when a path leads through something other than a folder, such as a link, and when a file is not the
 * one that the change was made for. Pure, but for what `read` does.
 */
export function editTree(root: string, changes: readonly TreeChange[], read: ReadTree): EditedTree {
  const objects = new Map<string, GitObject>();
  const keep = (object: GitObject): string => {
    const id = objectId(object);
    objects.set(id, object);
    return id;
  };
  const split = changes.map((change) => ({ change, segments: change.path.split('/') }));
  const entries = editFolder(read(root), split, read, keep);
  return { id: keep(treeObject(entries)), objects: [...objects.values()] };
}

function editFolder(
  entries: readonly TreeEntry[],
  changes: readonly Change[],
  read: ReadTree,
  keep: (object: GitObject) => string,
): TreeEntry[] {
  const edited = new Map(entries.map((entry) => [entry.name, entry]));
  for (const [name, below] of Map.groupBy(changes, ({ segments }) => segments[0] ?? '')) {
    const before = edited.get(name);
    const after = below.some(({ segments }) => segments.length > 1)
      ? editedFolder(name, before, below, read, keep)
      : editedFile(name, before, below, keep);
    if (after === undefined) edited.delete(name);
    else edited.set(name, after);
  }
  return [...edited.values()];
}

/** Undefined when nothing is left in it: Git has no empty folders. */
function editedFolder(
  name: string,
  before: TreeEntry | undefined,
  changes: readonly Change[],
  read: ReadTree,
  keep: (object: GitObject) => string,
): TreeEntry | undefined {
  if (before !== undefined && !isTree(before)) throw inTheWay(changes);
  const below = changes.map(({ change, segments }) => ({ change, segments: segments.slice(1) }));
  const entries = editFolder(before === undefined ? [] : read(before.id), below, read, keep);
  return entries.length === 0 ? undefined : folderEntry(name, keep(treeObject(entries)));
}

function editedFile(
  name: string,
  before: TreeEntry | undefined,
  changes: readonly Change[],
  keep: (object: GitObject) => string,
): TreeEntry | undefined {
  const [{ change } = { change: undefined }, ...others] = changes;
  if (change === undefined || others.length > 0) throw inTheWay(changes);
  if (before !== undefined && !isRegularFile(before)) throw inTheWay(changes);
  if (before?.id !== change.previous) {
    throw gitFailure(`${printable(change.path, 300)} has changed since it was read; the next look reads it again`);
  }
  if (change.text === undefined) return undefined;
  const id = keep({ type: 'blob', content: Buffer.from(change.text) });
  return { mode: before?.mode ?? NEW_FILE_MODE, name, id };
}

function inTheWay(changes: readonly Change[]): Error {
  const path = printable(changes[0]?.change.path ?? '', 300);
  return gitFailure(`${path}: the repository has something other than a folder or a regular file there; remove it`);
}
