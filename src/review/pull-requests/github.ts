import type { CallOptions } from '../../lib/call-options.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { encodedPath, listOf, numberAt, type RepositoryApi } from './api.ts';
import type { FileChange, NumberedPullRequest, PullRequestDraft, PullRequestServer } from './port.ts';

/** The branch, or the pull request from it, exists; also any other invalid request. The caller looks which. */
const EXISTS = [422];
const REGULAR_FILE = '100644';

/** GitHub's `/repos/OWNER/NAME`. The commit is made of Git objects, so that the branch appears with all files or not at all. */
export function githubServer(api: RepositoryApi, repository: string): PullRequestServer {
  const [owner = ''] = repository.split('/');
  return {
    async find(branch, base, op) {
      const head = encodeURIComponent(`${owner}:${branch}`);
      const query = `state=all&per_page=1&head=${head}&base=${encodeURIComponent(base)}`;
      const [found] = listOf(await api.get(`/pulls?${query}`, op));
      return found === undefined ? undefined : pullRequestOf(found);
    },
    get: async (number, op) => pullRequestOf(await api.get(`/pulls/${number}`, op)),
    hasBranch: async (branch, op) => (await api.find(`/git/ref/heads/${encodedPath(branch)}`, op)) !== undefined,
    async filesIn(folder, branch, op) {
      const found = await api.find(`/contents/${encodedPath(folder)}?ref=${encodeURIComponent(branch)}`, op);
      const files = listOf(found).filter((entry) => textAt(entry, ['type']) === 'file');
      return new Map(files.map((file) => [textAt(file, ['path']), textAt(file, ['sha'])]));
    },
    async createBranch(draft, changes, op) {
      const sha = await commitOn(api, draft, changes, op);
      await api.create('/git/refs', { ref: `refs/heads/${draft.branch}`, sha }, EXISTS, op);
    },
    async commit(draft, changes, op) {
      const sha = await commitOn(api, draft, changes, op);
      await api.update(`/git/refs/heads/${encodedPath(draft.base)}`, { sha, force: false }, op);
    },
    async create({ branch, base, title, body }, op) {
      const created = await api.create('/pulls', { head: branch, base, title, body }, EXISTS, op);
      return created === undefined ? undefined : pullRequestOf(created);
    },
    async comments(number, op) {
      return listOf(await api.get(`/issues/${number}/comments?per_page=100`, op)).map((one) => textAt(one, ['body']));
    },
    async createComment(number, text, op) {
      await api.create(`/issues/${number}/comments`, { body: text }, [], op);
    },
  };
}

/** Creates a commit on top of the base branch that no branch has yet, and returns its name. */
async function commitOn(
  api: RepositoryApi,
  { base, title }: Pick<PullRequestDraft, 'base' | 'title'>,
  changes: readonly FileChange[],
  op: CallOptions,
): Promise<string> {
  const parent = textAt(await api.get(`/git/ref/heads/${encodedPath(base)}`, op), ['object', 'sha']);
  const baseTree = textAt(await api.get(`/git/commits/${encodeURIComponent(parent)}`, op), ['tree', 'sha']);
  const entries = changes.map(treeEntry);
  const tree = textAt(await api.create('/git/trees', { base_tree: baseTree, tree: entries }, [], op), ['sha']);
  return textAt(await api.create('/git/commits', { message: title, tree, parents: [parent] }, [], op), ['sha']);
}

function treeEntry({ path, text }: FileChange): Json {
  const entry = { path, mode: REGULAR_FILE, type: 'blob' };
  return text === undefined ? { ...entry, sha: null } : { ...entry, content: text };
}

function pullRequestOf(pull: Json): NumberedPullRequest {
  const isMerged = textAt(pull, ['merged_at']) !== '';
  const state = isMerged ? 'Merged' : textAt(pull, ['state']) === 'open' ? 'Open' : 'Closed';
  return { number: numberAt(pull, 'number'), url: textAt(pull, ['html_url']), state };
}
