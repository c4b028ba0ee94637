import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallContext } from '../../../tools/contract.ts';
import type { Terminal } from '../../terminal/port.ts';
import { LocalRepository, withExchangeFolder } from './local-repository.ts';

/** The history of a branch, checked. */
export interface FetchToWrite {
  /** Of the repository, relative to the workspace. */
  folder: string;
  branch: string;
  commit: string;
  /** Everything of the commit that the repository does not have. */
  pack: Buffer;
}

/** Of all protocols only files, one of which is named; nothing that a commit contains is believed. */
const SETTINGS = ['protocol.file.allow=always', 'fetch.fsckObjects=true', 'fetch.unpackLimit=1'];
const QUIET = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules'];

/** Hands the pack to Git as a bundle, and moves `origin/BRANCH` to the commit. Throws the errors of Git and of the terminal. */
export async function writeFetch(
  { folder, branch, commit, pack }: FetchToWrite,
  { workspace, terminal }: { workspace: string; terminal: Terminal },
  context: CallContext,
): Promise<void> {
  const local = new LocalRepository(folder, terminal, context);
  await withExchangeFolder(workspace, async (exchange) => {
    const bundle = join(exchange, 'fetched.bundle');
    const header = Buffer.from(`# v2 git bundle\n${commit} refs/heads/${branch}\n\n`);
    await writeFile(bundle, Buffer.concat([header, pack]), { flag: 'wx' });
    const refs = `+refs/heads/${branch}:refs/remotes/origin/${branch}`;
    await local.git(['fetch', ...QUIET, bundle, refs], { settings: SETTINGS });
  });
}
