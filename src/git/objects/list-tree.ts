import { printable } from '../../lib/printable.ts';
import { gitFailure } from '../failure.ts';
import type { ReadTree } from './edit-tree.ts';
import { isTree, type TreeEntry } from './tree.ts';

export interface FolderLimits {
  /** Of all folders together: one folder may be in a tree any number of times. */
  readonly entries: number;
  readonly depth: number;
  /** Names with a dot in front are entries too. */
  readonly hidden?: boolean;
}

/** Names that lead elsewhere, or that some disk takes for the folder of Git itself. */
const UNSAFE = /^(?:\.|\.\.|\.git|git~\d)[. ]*$/i;

/**
 * Files, links and submodules below a tree by their paths. Leaves out hidden entries, unless the limits say otherwise; throws for unsafe names
 * and beyond the limits.
 */
export function listBelow(read: ReadTree, root: string, limits: FolderLimits): Map<string, TreeEntry> {
  const found = new Map<string, TreeEntry>();
  let seen = 0;
  const visit = (id: string, folder: string, depth: number): void => {
    if (depth > limits.depth) throw gitFailure(`the folder has more than ${limits.depth} levels of folders`);
    for (const entry of read(id)) {
      seen += 1;
      if (seen > limits.entries) throw gitFailure(`the folder has more than ${limits.entries} files and folders`);
      if (UNSAFE.test(entry.name)) throw gitFailure(`the folder has an entry "${printable(entry.name, 100)}"`);
      if (entry.name.startsWith('.') && limits.hidden !== true) continue;
      const path = `${folder}${entry.name}`;
      if (isTree(entry)) visit(entry.id, `${path}/`, depth + 1);
      else found.set(path, entry);
    }
  };
  visit(root, '', 0);
  return found;
}
