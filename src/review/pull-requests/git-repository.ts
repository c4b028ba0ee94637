import { gitFailure } from '../../git/failure.ts';
import { objectId } from '../../git/objects/object-id.ts';
import type { GitRemote } from '../../git/remote.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { APPROVAL_FILE, REVOCATION_FILE, TOOL_FILE } from '../gitops/gitops-files.ts';
import { changesOf } from './open-pull-request.ts';
import type { FileChange, Proposal, PullRequest, PullRequestDraft, Repository } from './port.ts';

type Remote = Pick<GitRemote, 'branches' | 'filesIn' | 'push'>;

/** What decides about a tool: when the base branch has them, the proposal is merged. The page may have changed since. */
const MANIFESTS = [TOOL_FILE, APPROVAL_FILE, REVOCATION_FILE];
const MAX_ATTEMPTS = 3;

/**
 * A repository that is known by its URL alone. A proposal is a branch: `Merged` when the base branch has its manifests with the same content,
 * otherwise `Open` while the branch exists, and `Closed` when a known branch is gone. Nothing is commented.
 */
export function gitRepository(remote: Remote, url: string): Repository {
  const branches = new RemoteBranches(remote);
  return {
    hasBranch: async (branch, op) => (await remote.branches([branch], op)).has(branch),
    filesIn: (folder, branch, op) => branches.filesIn(folder, branch, op),
    createBranch: (draft, changes, op) => branches.create(draft, changes, op),
    commit: (draft, changes, op) => branches.commit(draft, changes, op),
    async propose(proposal, op) {
      const shown = `${url}#${proposal.branch}`;
      const wasProposed = proposal.known?.url === shown;
      return { url: shown, state: await stateOf(proposal, wasProposed, branches, op) };
    },
  };
}

async function stateOf(
  { branch, base, folder, draft: drafted }: Proposal,
  wasProposed: boolean,
  branches: RemoteBranches,
  op: CallOptions,
): Promise<PullRequest['state']> {
  const found = await branches.idsOf([branch, base], op);
  const head = found.get(branch);
  const onBase = manifestsOf(await branches.filesAt(folder, found.get(base) ?? missing(base), op));
  if (head !== undefined) {
    if (onBase.size === 0) return 'Open';
    const proposed = manifestsOf(await branches.filesAt(folder, head, op));
    return proposed.size > 0 && containsAll(onBase, proposed) ? 'Merged' : 'Open';
  }
  const draft = await drafted();
  if (containsAll(onBase, manifestsIn(draft))) return 'Merged';
  if (wasProposed) return 'Closed';
  await branches.create(draft, await changesOf(branches, draft, op), op);
  return 'Open';
}

type Files = ReadonlyMap<string, string>;

function containsAll(files: Files, wanted: Files): boolean {
  return [...wanted].every(([path, id]) => files.get(path) === id);
}

function manifestsOf(files: Files): Files {
  return new Map([...files].filter(([path]) => isManifest(path)));
}

/** Files that stay as the base branch has them say nothing about the proposal. */
function manifestsIn({ files, kept }: PullRequestDraft): Files {
  const own = files.filter(({ path }) => isManifest(path) && !kept.includes(path));
  return new Map(own.map(({ path, text }) => [path, objectId({ type: 'blob', content: Buffer.from(text) })]));
}

function isManifest(path: string): boolean {
  return MANIFESTS.some((name) => path.endsWith(`/${name}`));
}

/** Reads and writes of branches by their names. */
class RemoteBranches {
  readonly #remote: Remote;

  constructor(remote: Remote) {
    this.#remote = remote;
  }

  idsOf(names: readonly string[], op: CallOptions): Promise<ReadonlyMap<string, string>> {
    return this.#remote.branches(names, op);
  }

  async filesIn(folder: string, branch: string, op: CallOptions): Promise<Files> {
    return this.filesAt(folder, (await this.idsOf([branch], op)).get(branch), op);
  }

  async filesAt(folder: string, commit: string | undefined, op: CallOptions): Promise<Files> {
    return commit === undefined ? new Map() : this.#remote.filesIn(folder, commit, op);
  }

  async create(
    { branch, base, title }: Pick<PullRequestDraft, 'branch' | 'base' | 'title'>,
    changes: readonly FileChange[],
    op: CallOptions,
  ): Promise<void> {
    const found = await this.idsOf([branch, base], op);
    if (found.has(branch)) return;
    const parent = found.get(base) ?? missing(base);
    const refusal = await this.#remote.push({ branch, before: undefined, parent, changes, message: title }, op);
    if (refusal === undefined || (await this.idsOf([branch], op)).has(branch)) return;
    throw refused(branch, refusal);
  }

  /** Others may push at the same time. Each attempt is on top of what they pushed, and fails when they changed the same files. */
  async commit(
    { base, title }: Pick<PullRequestDraft, 'base' | 'title'>,
    changes: readonly FileChange[],
    op: CallOptions,
  ): Promise<void> {
    let parent = (await this.idsOf([base], op)).get(base) ?? missing(base);
    for (let attempt = 1; ; attempt += 1) {
      const refusal = await this.#remote.push({ branch: base, before: parent, parent, changes, message: title }, op);
      if (refusal === undefined) return;
      const now = (await this.idsOf([base], op)).get(base) ?? missing(base);
      if (now === parent || attempt === MAX_ATTEMPTS) throw refused(base, refusal);
      parent = now;
    }
  }
}

function missing(base: string): never {
  throw gitFailure(
    `the repository has no branch ${base}; push a first commit to it, or correct the branch of the policy`,
  );
}

function refused(branch: string, refusal: string): Error {
  return gitFailure(`the server refuses the push to ${branch}: ${refusal}; check what the token may write`);
}
