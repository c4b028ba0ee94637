import type { Gitea } from '../../cluster/gitea.ts';
import { pollValue } from '../poll.ts';

interface PullRequestOnServer {
  readonly number: number;
  readonly head: { readonly ref: string };
}

/** The repository `owner/tools` on a Gitea, as its users see it. */
export class GiteaRepository {
  readonly #gitea: Pick<Gitea, 'call'>;

  constructor(gitea: Pick<Gitea, 'call'>) {
    this.#gitea = gitea;
  }

  /** Creates the repository with an empty branch `main`. */
  async create(): Promise<void> {
    await this.#gitea.call('POST', '/user/repos', { name: 'tools', auto_init: true, default_branch: 'main' });
  }

  /** All pull requests of the branch. */
  async pulls(branch: string): Promise<PullRequestOnServer[]> {
    const all = await this.#gitea.call('GET', '/repos/owner/tools/pulls?state=all&limit=50');
    return (all as PullRequestOnServer[]).filter(({ head }) => head.ref === branch);
  }

  async fileOn(branch: string, path: string): Promise<string> {
    const ref = encodeURIComponent(branch);
    const file = await this.#gitea.call('GET', `/repos/owner/tools/contents/${path}?ref=${ref}`);
    return Buffer.from((file as { content: string }).content, 'base64').toString('utf8');
  }

  /** The texts of all files of the branch `main` below the folder, by path. */
  async filesBelow(folder: string): Promise<Record<string, string>> {
    const found = await this.#gitea.call('GET', '/repos/owner/tools/git/trees/main?recursive=true&per_page=1000');
    const { tree } = found as { tree: { path: string; type: string }[] };
    const paths = tree.filter(({ path, type }) => type === 'blob' && path.startsWith(`${folder}/`));
    const texts = paths.map(async ({ path }) => [path, await this.fileOn('main', path)]);
    return Object.fromEntries(await Promise.all(texts)) as Record<string, string>;
  }

  /** Gitea checks for conflicts in the background before it merges. */
  async merge(number: number): Promise<void> {
    await pollValue(
      'the merge',
      () =>
        this.#gitea.call('POST', `/repos/owner/tools/pulls/${number}/merge`, { Do: 'merge' }).then(
          () => true,
          () => false,
        ),
      (merged) => merged,
    );
  }
}
