import { gitFailure } from '../failure.ts';
import type { PackObjects } from '../pack/pack-reader.ts';
import { treeOf } from './commit.ts';
import { type GitObject, objectId } from './object-id.ts';
import { isTree, parseTree, type TreeEntry } from './tree.ts';

/** Every repository has it, so a server may leave it out. */
const EMPTY: GitObject = { type: 'tree', content: Buffer.alloc(0) };
const EMPTY_TREE = objectId(EMPTY);

/** The tree of a commit. */
export function rootOf(objects: PackObjects, commit: string): string {
  return treeOf(contentOf(objects, commit, 'commit'));
}

/** The id of a folder below a tree. */
export function folderIn(objects: PackObjects, root: string, folder: string): string | undefined {
  let current = root;
  for (const segment of folder === '' ? [] : folder.split('/')) {
    const found = treeIn(objects, current).find(({ name }) => name === segment);
    if (found === undefined || !isTree(found)) return undefined;
    current = found.id;
  }
  return current;
}

/** The entries of a tree. */
export function treeIn(objects: PackObjects, id: string): TreeEntry[] {
  return parseTree(contentOf(objects, id, 'tree'));
}

/** An object under its own id: what a server leaves out or replaces is missing. */
export function contentOf(objects: PackObjects, id: string, type: GitObject['type']): Buffer {
  const found = id === EMPTY_TREE ? EMPTY : objects.get(id);
  if (found?.type === type) return found.content;
  throw gitFailure(`the server did not send ${type} ${id}`);
}
