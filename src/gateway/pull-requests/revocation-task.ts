import { reviewOfObjects, sharedObjectName } from '../../review/gitops/review-of-objects.ts';
import type { PromotionFacts } from '../../review/gitops/gitops-files.ts';
import { branchOf, folderIn, pullRequestDraft, revocationDraft } from '../../review/pull-requests/draft.ts';
import type { PullRequestDraft } from '../../review/pull-requests/port.ts';
import { recordRevocation } from '../../review/pull-requests/record-revocation.ts';
import { type GitOpsLocation, type GitTask, knownTo } from './follow.ts';
import type { PromotionMaterial } from './request-task.ts';
import type { WithdrawnPromotion } from './revoked-promotions.ts';

/** Brings a revocation into the branch. `material`: undefined when no object of the tool exists any more. */
export function revocationTask(
  revoked: WithdrawnPromotion,
  gitOps: GitOpsLocation,
  material: () => Promise<PromotionMaterial | undefined>,
): GitTask {
  const { namespace, tool, digest, approval } = revoked;
  const object = sharedObjectName(namespace, tool, digest);
  return {
    kind: 'Revocation',
    namespace,
    name: approval.name,
    uid: approval.uid,
    gitOps,
    async run({ repository, connection, op }, known) {
      const { approver, revocations: how = 'PullRequest' } = connection.git;
      const folder = folderIn(gitOps, { namespace, object });
      const draft = async () => draftOf(revoked, gitOps, approver, await material());
      const place = { folder, base: gitOps.branch, branch: branchOf(revoked.nonce, 'revoke') };
      return recordRevocation(repository, { ...place, ...knownTo(known), how, draft }, op);
    },
  };
}

function draftOf(
  revoked: WithdrawnPromotion,
  gitOps: GitOpsLocation,
  approvedBy: string,
  material: PromotionMaterial | undefined,
): PullRequestDraft {
  const { namespace, tool: name, digest, nonce, by, reason } = revoked;
  const decision = { by, ...(reason === undefined ? {} : { reason }) };
  if (material !== undefined) {
    const review = { ...reviewOfObjects(material.objects, { namespace, nonce, approvedBy }), ...material.facts };
    return pullRequestDraft({ ...review, promotion: { ...review.promotion, revoked: decision } }, gitOps);
  }
  const facts: PromotionFacts = {
    namespace,
    object: sharedObjectName(namespace, name, digest),
    digest,
    artifact: { name },
    promotion: { nonce, approvedBy, revoked: decision },
  };
  return revocationDraft(facts, gitOps);
}
