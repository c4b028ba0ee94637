import { gitFailure } from '../failure.ts';
import type { GitObject } from './object-id.ts';

/** `tree ID` and `parent ID`, each with its line break. */
const TREE_LINE_BYTES = 46;
const PARENT_LINE_BYTES = 48;

/** The tree of a commit. */
export function treeOf(content: Buffer): string {
  const [, tree] = /^tree ([0-9a-f]{40})\n/.exec(content.toString('latin1', 0, TREE_LINE_BYTES)) ?? [];
  if (tree === undefined) throw gitFailure('the server sent a commit without a tree');
  return tree;
}

/** The parents of a commit, in its order. Reads only the lines that name them: the text after them may have megabytes. */
export function parentsOf(content: Buffer): string[] {
  const parents: string[] = [];
  for (let offset = TREE_LINE_BYTES; ; offset += PARENT_LINE_BYTES) {
    const line = content.toString('latin1', offset, offset + PARENT_LINE_BYTES);
    const [, parent] = /^parent ([0-9a-f]{40})\n$/.exec(line) ?? [];
    if (parent === undefined) return parents;
    parents.push(parent);
  }
}

const AUTHOR = 'Temper <temper@localhost>';

/** A commit of Temper. `message` is of Temper too: no text of a tool but its checked name. */
export function commitObject(commit: { tree: string; parent: string; message: string; at: Date }): GitObject {
  const time = `${Math.floor(commit.at.getTime() / 1_000)} +0000`;
  const text = [
    `tree ${commit.tree}`,
    `parent ${commit.parent}`,
    `author ${AUTHOR} ${time}`,
    `committer ${AUTHOR} ${time}`,
    '',
    `${commit.message}\n`,
  ].join('\n');
  return { type: 'commit', content: Buffer.from(text) };
}
