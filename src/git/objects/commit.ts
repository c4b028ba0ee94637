import { gitFailure } from '../failure.ts';
import type { GitObject } from './object-id.ts';

/** The tree of a commit. */
export function treeOf(content: Buffer): string {
  const [, tree] = /^tree ([0-9a-f]{40})\n/.exec(content.toString('latin1', 0, 46)) ?? [];
  if (tree === undefined) throw gitFailure('the server sent a commit without a tree');
  return tree;
}

/** The parents of a commit, in its order. */
export function parentsOf(content: Buffer): string[] {
  const parents: string[] = [];
  for (const line of content.toString('latin1').split('\n').slice(1)) {
    const [, parent] = /^parent ([0-9a-f]{40})$/.exec(line) ?? [];
    if (parent === undefined) break;
    parents.push(parent);
  }
  return parents;
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
