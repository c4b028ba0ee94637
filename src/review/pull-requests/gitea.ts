import { type Json, member, textAt } from '../../lib/json.ts';
import { encodedPath, listOf, numberAt, type RepositoryApi } from './api.ts';
import type { FileChange, NumberedPullRequest, PullRequestServer } from './port.ts';

const PAGE = 50;
const MAX_PAGES = 10;
/** The branch or the pull request exists. */
const EXISTS = [409];

/** Gitea's and Forgejo's `/api/v1/repos/OWNER/NAME`. */
export function giteaServer(api: RepositoryApi): PullRequestServer {
  return {
    async find(branch, base, op) {
      for (let page = 1; page <= MAX_PAGES; page += 1) {
        const found = listOf(await api.get(`/pulls?state=all&sort=recentupdate&limit=${PAGE}&page=${page}`, op));
        const own = found.find(
          (pull) => textAt(pull, ['head', 'ref']) === branch && textAt(pull, ['base', 'ref']) === base,
        );
        if (own !== undefined) return pullRequestOf(own);
        if (found.length < PAGE) return undefined;
      }
      return undefined;
    },
    get: async (number, op) => pullRequestOf(await api.get(`/pulls/${number}`, op)),
    hasBranch: async (branch, op) => (await api.find(`/branches/${encodedPath(branch)}`, op)) !== undefined,
    async filesIn(folder, branch, op) {
      const found = await api.find(`/contents/${encodedPath(folder)}?ref=${encodeURIComponent(branch)}`, op);
      const files = listOf(found).filter((entry) => textAt(entry, ['type']) === 'file');
      return new Map(files.map((file) => [textAt(file, ['path']), textAt(file, ['sha'])]));
    },
    async createBranch({ branch, base, title }, changes, op) {
      const body = { branch: base, new_branch: branch, message: title, files: changes.map(operationOf) };
      await api.create('/contents', body, EXISTS, op);
    },
    async commit({ base, title }, changes, op) {
      await api.create('/contents', { branch: base, message: title, files: changes.map(operationOf) }, [], op);
    },
    async create({ branch, base, title, body }, op) {
      const created = await api.create('/pulls', { head: branch, base, title, body }, EXISTS, op);
      return created === undefined ? undefined : pullRequestOf(created);
    },
    async comments(number, op) {
      return listOf(await api.get(`/issues/${number}/comments`, op)).map((comment) => textAt(comment, ['body']));
    },
    async createComment(number, text, op) {
      await api.create(`/issues/${number}/comments`, { body: text }, [], op);
    },
  };
}

function operationOf({ path, text, previous }: FileChange): Json {
  const sha = previous === undefined ? {} : { sha: previous };
  if (text === undefined) return { operation: 'delete', path, ...sha };
  const content = Buffer.from(text).toString('base64');
  return { operation: previous === undefined ? 'create' : 'update', path, content, ...sha };
}

function pullRequestOf(pull: Json): NumberedPullRequest {
  const isMerged = member(pull, 'merged') === true;
  const state = isMerged ? 'Merged' : textAt(pull, ['state']) === 'open' ? 'Open' : 'Closed';
  return { number: numberAt(pull, 'number'), url: textAt(pull, ['html_url']), state };
}
