import { type Json, textAt } from '../../lib/json.ts';
import { encodedPath, listOf, numberAt, type RepositoryApi } from './api.ts';
import type { FileChange, NumberedPullRequest, PullRequest, PullRequestServer } from './port.ts';

/** The branch exists; also any other invalid request. The caller looks which. */
const BRANCH_EXISTS = [400];
const REQUEST_EXISTS = [409];

/** GitLab's `/projects/ID`, with merge requests. */
export function gitlabServer(api: RepositoryApi): PullRequestServer {
  return {
    async find(branch, base, op) {
      const query = `state=all&per_page=1&source_branch=${encodeURIComponent(branch)}&target_branch=${encodeURIComponent(base)}`;
      const [found] = listOf(await api.get(`/merge_requests?${query}`, op));
      return found === undefined ? undefined : pullRequestOf(found);
    },
    get: async (number, op) => pullRequestOf(await api.get(`/merge_requests/${number}`, op)),
    hasBranch: async (branch, op) =>
      (await api.find(`/repository/branches/${encodeURIComponent(branch)}`, op)) !== undefined,
    async filesIn(folder, branch, op) {
      const query = `per_page=100&path=${encodedPath(folder)}&ref=${encodeURIComponent(branch)}`;
      const found = listOf(await api.find(`/repository/tree?${query}`, op));
      const files = found.filter((entry) => textAt(entry, ['type']) === 'blob');
      return new Map(files.map((file) => [textAt(file, ['path']), textAt(file, ['id'])]));
    },
    async createBranch({ branch, base, title }, changes, op) {
      const body = { branch, start_branch: base, commit_message: title, actions: changes.map(actionOf) };
      await api.create('/repository/commits', body, BRANCH_EXISTS, op);
    },
    async commit({ base, title }, changes, op) {
      const body = { branch: base, commit_message: title, actions: changes.map(actionOf) };
      await api.create('/repository/commits', body, [], op);
    },
    async create({ branch, base, title, body }, op) {
      const request = { source_branch: branch, target_branch: base, title, description: body };
      const created = await api.create('/merge_requests', request, REQUEST_EXISTS, op);
      return created === undefined ? undefined : pullRequestOf(created);
    },
    async comments(number, op) {
      return listOf(await api.get(`/merge_requests/${number}/notes?sort=asc&per_page=100`, op)).map((note) =>
        textAt(note, ['body']),
      );
    },
    async createComment(number, text, op) {
      await api.create(`/merge_requests/${number}/notes`, { body: text }, [], op);
    },
  };
}

function actionOf({ path, text, previous }: FileChange): Json {
  if (text === undefined) return { action: 'delete', file_path: path };
  return { action: previous === undefined ? 'create' : 'update', file_path: path, content: text };
}

const STATES: Readonly<Record<string, PullRequest['state']>> = { opened: 'Open', locked: 'Open', merged: 'Merged' };

function pullRequestOf(request: Json): NumberedPullRequest {
  const state = STATES[textAt(request, ['state'])] ?? 'Closed';
  return { number: numberAt(request, 'iid'), url: textAt(request, ['web_url']), state };
}
