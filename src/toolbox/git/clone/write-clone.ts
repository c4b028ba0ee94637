import { mkdir, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clone } from '../../../git/remote.ts';
import { hasErrno, TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import type { CallContext } from '../../../tools/contract.ts';
import { resolveWriteTarget } from '../../path-resolution.ts';
import type { Terminal } from '../../terminal/port.ts';
import { runGit } from '../git-command.ts';

export interface CloneToWrite {
  /** Relative to the workspace. */
  folder: string;
  url: string;
  clone: Pick<Clone, 'commit' | 'pack' | 'shallow'>;
  branch: string | undefined;
}

export interface WriteCloneDeps {
  workspace: string;
  protectedFolders?: readonly string[];
  terminal: Terminal;
}

const CHECKSUM_BYTES = 20;
/** The branch that a repository without one begins with, before its HEAD becomes the commit. */
const UNBORN = 'main';

/** Makes the repository in a new folder and checks its commit out. On failure it leaves nothing of the folder. */
export async function writeClone(
  { folder, url, clone, branch }: CloneToWrite,
  { workspace, protectedFolders = [], terminal }: WriteCloneDeps,
  context: CallContext,
): Promise<void> {
  const target = await newFolder(folder, workspace, protectedFolders);
  const git = (...args: string[]) => runGit(terminal, context, { args, folder });
  try {
    const pack = await writeRepository(target, { folder, url, clone, branch });
    await git('index-pack', '--strict', pack);
    if (branch === undefined) await git('update-ref', '--no-deref', 'HEAD', clone.commit);
    else await git('update-ref', `refs/heads/${branch}`, clone.commit);
    await git('reset', '--hard', '--quiet');
    if (branch !== undefined) await git('update-ref', `refs/remotes/origin/${branch}`, clone.commit);
  } catch (error) {
    await rm(target, { recursive: true, force: true });
    throw error;
  }
}

/** The real path of the folder. */
async function newFolder(folder: string, workspace: string, closed: readonly string[]): Promise<string> {
  const { folder: parent, name } = await resolveWriteTarget(folder, workspace, closed);
  const target = join(parent, name);
  await mkdir(target).catch((error: unknown) => {
    const problem = hasErrno(error, 'EEXIST') ? 'exists; name a folder that does not exist' : 'cannot be made';
    throw new TemperError('TEMPER_FILE_DENIED', `"${printable(folder, 200)}" ${problem}`, { cause: error });
  });
  return target;
}

/**
 * An empty repository with the pack. Not `git init`, which changes modes of files, as no program of an agent may. Returns where
 * `git index-pack` finds the pack, relative to the repository.
 */
async function writeRepository(target: string, { url, clone, branch = UNBORN }: CloneToWrite): Promise<string> {
  const root = join(target, '.git');
  const packs = join(root, 'objects', 'pack');
  for (const folder of [packs, join(root, 'refs', 'heads')]) await mkdir(folder, { recursive: true });
  // A program of the agent may move folders meanwhile.
  if ((await realpath(packs)) !== packs)
    throw new TemperError('TEMPER_FILE_DENIED', 'another program changed the repository while it was made');
  const { pack, shallow } = clone;
  const name = `pack-${pack.toString('hex', pack.length - CHECKSUM_BYTES)}.pack`;
  const files: [path: string, content: string | Buffer][] = [
    [join(root, 'HEAD'), `ref: refs/heads/${branch}\n`],
    [join(root, 'config'), configOf(url)],
    ...(shallow.length === 0 ? [] : [[join(root, 'shallow'), `${shallow.join('\n')}\n`] as [string, string]]),
    [join(packs, name), pack],
  ];
  for (const [path, content] of files) await writeFile(path, content, { flag: 'wx' });
  return join('.git', 'objects', 'pack', name);
}

/** For the Git of the user: the tools read no address from it. */
function configOf(url: string): string {
  const quoted = url.replaceAll(/["\\]/g, (character) => `\\${character}`);
  const lines = [
    '[core]',
    '\trepositoryformatversion = 0',
    '\tbare = false',
    '\tsymlinks = false',
    '[remote "origin"]',
    `\turl = "${quoted}"`,
    '\tfetch = +refs/heads/*:refs/remotes/origin/*',
  ];
  return `${lines.join('\n')}\n`;
}
