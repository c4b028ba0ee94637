import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** Nothing of the user's own configuration. */
const ENVIRONMENT = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Kim',
  GIT_AUTHOR_EMAIL: 'kim@example.com',
  GIT_COMMITTER_NAME: 'Kim',
  GIT_COMMITTER_EMAIL: 'kim@example.com',
};

/** Makes a repository with one commit of these texts, by their paths, and returns its folder for a server. Throws without Git. */
export async function createRepository(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  for (const args of [
    ['init', '-q', '--initial-branch=main'],
    ['add', '.'],
    ['commit', '-q', '-m', 'Add the tools'],
  ])
    await promisify(execFile)('git', args, { cwd: folder, env: ENVIRONMENT }).catch((error: unknown) => {
      throw new Error('this sample needs the program git, version 2.28 or later', { cause: error });
    });
  return join(folder, '.git');
}
