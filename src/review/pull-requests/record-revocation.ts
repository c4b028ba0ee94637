import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { APPROVAL_FILE, REVOCATION_FILE } from '../gitops/gitops-files.ts';
import { changesOf } from './open-pull-request.ts';
import type { Proposal, PullRequest, Repository } from './port.ts';

/** A revocation in a repository. A commit on the branch itself has neither number nor URL. */
export type RecordedRevocation = Pick<PullRequest, 'state'> & Partial<PullRequest>;

/** `base` is the branch that a cluster is rebuilt from. */
export interface RevocationOrder extends Proposal {
  readonly how: 'PullRequest' | 'Commit';
}

/**
 * Brings a revocation into the branch from which a cluster is rebuilt, or follows the pull request that does. Undefined: the branch has no
 * approval of the tool, so nothing brings it back. Can be repeated at any time: what counts is the branch.
 */
export async function recordRevocation(
  repository: Repository,
  order: RevocationOrder,
  op: CallOptions,
): Promise<RecordedRevocation | undefined> {
  const { folder, base, how } = order;
  const files = await repository.filesIn(folder, base, op);
  const revocation = `${folder}/${REVOCATION_FILE}`;
  if (files.has(revocation)) return { state: 'Merged' };
  if (files.size === 0 && !(await repository.hasBranch(base, op))) throw missingBranch(base);
  if (!files.has(`${folder}/${APPROVAL_FILE}`)) return undefined;
  if (how === 'Commit') {
    const draft = await order.draft();
    await repository.commit(draft, await changesOf(repository, draft, op), op);
    return { state: 'Merged' };
  }
  const pullRequest = await repository.propose(order, op);
  // A user may have merged it since the first look.
  const isMissing = async () => !(await repository.filesIn(folder, base, op)).has(revocation);
  if (pullRequest.state !== 'Merged' || !(await isMissing())) return pullRequest;
  throw new TemperError(
    'TEMPER_CONNECTION_FAILED',
    `${pullRequest.url} is merged, and branch ${base} has no ${REVOCATION_FILE} of the tool; restore the file`,
    { retry: 'backoff' },
  );
}

/** Without its branch, a tool would look as if Git did not have it. */
function missingBranch(base: string): TemperError {
  return new TemperError(
    'TEMPER_CONNECTION_FAILED',
    `the repository, or its branch ${base}, does not exist or is not visible to the token; correct promotion.toShared.gitOps or the connection`,
    { retry: 'backoff' },
  );
}
