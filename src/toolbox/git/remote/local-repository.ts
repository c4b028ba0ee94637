import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isObjectId } from '../../../git/objects/object-id.ts';
import type { KnownCommits } from '../../../git/protocol/upload-pack.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { CallContext } from '../../../tools/contract.ts';
import type { Terminal } from '../../terminal/port.ts';
import { runGit, type GitCommand } from '../git-command.ts';

/** Ids in one question to Git; its answer has at most 64 KiB. */
const MAX_IDS = 500;
const MAX_HAVES = 200;

/** A repository in the workspace, as confined Git sees it: the agent may have written what Git reads. */
export class LocalRepository {
  readonly #folder: string;
  readonly #terminal: Terminal;
  readonly #context: CallContext;

  constructor(folder: string, terminal: Terminal, context: CallContext) {
    this.#folder = folder;
    this.#terminal = terminal;
    this.#context = context;
  }

  /** Throws as `runGit`. */
  async git(args: readonly string[], more: Pick<GitCommand, 'input' | 'settings'> = {}): Promise<string> {
    return (await runGit(this.#terminal, this.#context, { args, folder: this.#folder, ...more })).text;
  }

  /** Those of the ids that are commits of the repository, in their order. */
  async commitsOf(ids: readonly string[]): Promise<string[]> {
    const asked = [...new Set(ids)].slice(0, MAX_IDS);
    if (asked.length === 0) return [];
    const check = ['cat-file', '--batch-check=%(objectname) %(objecttype)'];
    const lines = (await this.git(check, { input: `${asked.join('\n')}\n` })).split('\n');
    const found = new Set(lines.filter((line) => line.endsWith(' commit')).map((line) => line.slice(0, 40)));
    return asked.filter((id) => found.has(id));
  }

  /** Its latest commits, and those without parents in it: a server leaves out what lies before them. */
  async known(): Promise<KnownCommits> {
    const latest = ['rev-list', `--max-count=${MAX_HAVES}`, '--branches', '--remotes'];
    const roots = ['rev-list', '--max-parents=0', `--max-count=${MAX_HAVES}`, '--all'];
    return { haves: idsIn(await this.git(latest)), shallow: idsIn(await this.git(roots)) };
  }
}

function idsIn(text: string): string[] {
  return [...new Set(text.split('\n').filter(isObjectId))];
}

/** A new folder in the workspace for one exchange with confined Git, which is removed afterwards. */
export async function withExchangeFolder<T>(workspace: string, work: (folder: string) => Promise<T>): Promise<T> {
  const root = await realpath(workspace);
  const folder = await mkdtemp(join(root, '.temper-git-'));
  try {
    // A program of the agent may move folders meanwhile.
    if ((await realpath(folder)) !== folder)
      throw new TemperError('TEMPER_FILE_DENIED', 'another program changed the workspace meanwhile');
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
