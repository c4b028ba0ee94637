import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import type {
  FileChange,
  NumberedPullRequest,
  PullRequestDraft,
  PullRequestServer,
  Repository,
  RepositoryBranches,
} from './port.ts';

/** A repository whose server has pull requests. */
export function hostedRepository(server: PullRequestServer): Repository {
  return {
    hasBranch: (branch, op) => server.hasBranch(branch, op),
    filesIn: (folder, branch, op) => server.filesIn(folder, branch, op),
    createBranch: (draft, changes, op) => server.createBranch(draft, changes, op),
    commit: (draft, changes, op) => server.commit(draft, changes, op),
    async propose({ known, draft }, op) {
      if (known?.number !== undefined) return server.get(known.number, op);
      return openPullRequest(server, await draft(), op);
    },
  };
}

/**
 * Opens the pull request of a promotion, or finds it. Can be repeated after a crash at any step: the branch is named after the nonce of the
 * request, each step looks for its own effect first, and a server has one pull request per branch.
 */
export async function openPullRequest(
  server: PullRequestServer,
  draft: PullRequestDraft,
  op: CallOptions,
): Promise<NumberedPullRequest> {
  const { branch, base } = draft;
  const found = await server.find(branch, base, op);
  const pullRequest = found ?? (await open(server, draft, op));
  if (pullRequest.state === 'Open') await comment(server, pullRequest, draft, op);
  return pullRequest;
}

async function open(server: PullRequestServer, draft: PullRequestDraft, op: CallOptions): Promise<NumberedPullRequest> {
  const { branch, base } = draft;
  if (!(await server.hasBranch(branch, op))) {
    await server.createBranch(draft, await changesOf(server, draft, op), op);
  }
  const created = (await server.create(draft, op)) ?? (await server.find(branch, base, op));
  if (created !== undefined) return created;
  throw new TemperError(
    'TEMPER_CONNECTION_FAILED',
    `the server has the branch ${branch} and no pull request from it, and refuses to open one; delete the branch`,
    { retry: 'backoff' },
  );
}

/** New and changed files, and those of an earlier promotion that this one does not have. */
export async function changesOf(
  server: Pick<RepositoryBranches, 'filesIn'>,
  { base, folder, files, kept }: PullRequestDraft,
  op: CallOptions,
): Promise<FileChange[]> {
  const existing = await server.filesIn(folder, base, op);
  const written = files
    .filter(({ path }) => !(kept.includes(path) && existing.has(path)))
    .map(({ path, text }) => ({ path, text, previous: existing.get(path) }));
  const named = new Set([...kept, ...files.map(({ path }) => path)]);
  const removed = [...existing]
    .filter(([path]) => !named.has(path))
    .map(([path, previous]) => ({ path, text: undefined, previous }));
  return [...written, ...removed];
}

async function comment(
  server: PullRequestServer,
  { number }: NumberedPullRequest,
  { branch, comment: text }: PullRequestDraft,
  op: CallOptions,
): Promise<void> {
  const marker = markerOf(branch);
  const existing = await server.comments(number, op);
  if (existing.some((one) => one.includes(marker))) return;
  await server.createComment(number, `${text}\n${marker}\n`, op);
}

/** Markdown does not show it. */
function markerOf(branch: string): string {
  return `<!-- ${branch} -->`;
}
