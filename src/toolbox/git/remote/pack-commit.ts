import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { isObjectId } from '../../../git/objects/object-id.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { CallContext } from '../../../tools/contract.ts';
import type { Terminal } from '../../terminal/port.ts';
import { LocalRepository, withExchangeFolder } from './local-repository.ts';
import type { BranchState } from './port.ts';

/** A commit of a repository of the workspace, for a branch of a server. */
export interface CommitToPack extends BranchState {
  /** Of the repository, relative to the workspace. */
  readonly folder: string;
  readonly branch: string;
  readonly commit: string;
}

export interface PackCommitDeps {
  workspace: string;
  terminal: Terminal;
  /** Of the pack. */
  maxBytes: number;
}

/**
 * The pack of what the server does not have, as confined Git makes it. Throws TEMPER_NOT_FOUND for a commit that the repository does not have,
 * and TEMPER_TOOL_FAILED for a branch that it does not know, and for more bytes than a push may have.
 */
export async function packCommit(
  order: CommitToPack,
  { workspace, terminal, maxBytes }: PackCommitDeps,
  context: CallContext,
): Promise<Buffer> {
  const local = new LocalRepository(order.folder, terminal, context);
  const known = await knownOnServer(local, order);
  return withExchangeFolder(workspace, async (folder) => {
    const input = `${[order.commit, ...known.map((id) => `^${id}`)].join('\n')}\n`;
    const args = ['pack-objects', '--revs', '--quiet', '--threads=1', join(folder, 'pushed')];
    const settings = ['pack.packSizeLimit=0', 'pack.writeReverseIndex=false'];
    const name = (await local.git(args, { input, settings })).trim();
    if (!isObjectId(name)) throw new TemperError('TEMPER_TOOL_FAILED', 'git made no pack of the commit');
    return readBounded(join(folder, `pushed-${name}.pack`), maxBytes);
  });
}

/** Commits of the server that the repository has too: the pack leaves out what they contain. */
async function knownOnServer(
  local: LocalRepository,
  { commit, before, branch, heads }: CommitToPack,
): Promise<string[]> {
  const wanted = before === undefined ? heads : [before];
  const [found, ...known] = await local.commitsOf([commit, ...wanted]);
  if (found !== commit)
    throw new TemperError('TEMPER_NOT_FOUND', `the repository in the workspace has no commit ${commit}`);
  if (before !== undefined && !known.includes(before))
    throw new TemperError(
      'TEMPER_TOOL_FAILED',
      `${branch} has commits that the repository in the workspace does not have; read it with git_fetch, and build on them`,
    );
  return wanted.includes(commit) ? [...known, commit] : known;
}

/** A regular file that a program of the agent wrote, and no link. */
async function readBounded(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const info = await file.stat();
  if (!info.isFile() || info.size > maxBytes)
    throw new TemperError('TEMPER_TOOL_FAILED', `the push has more than ${maxBytes} bytes; push fewer commits`);
  const bytes = Buffer.alloc(info.size);
  const { bytesRead } = await file.read(bytes, 0, info.size, 0);
  return bytes.subarray(0, bytesRead);
}
