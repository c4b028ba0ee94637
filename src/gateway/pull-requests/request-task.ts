import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { type PromotionObjects, reviewOfObjects, sharedObjectName } from '../../review/gitops/review-of-objects.ts';
import { branchOf, folderIn, pullRequestDraft } from '../../review/pull-requests/draft.ts';
import type { ToolReview } from '../../review/tool-review.ts';
import { type GitOpsLocation, type GitTask, knownTo } from './follow.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { RecordedFacts } from './recorded-facts.ts';

/** An ApprovalRequest for tier Shared whose policy asks for a pull request. */
export interface PendingRequest {
  readonly request: ApprovalRequest;
  readonly namespace: string;
  readonly promotion: { readonly tool: string; readonly digest: Digest };
  readonly gitOps: GitOpsLocation;
}

/** The objects of a promotion, and what else is recorded about it. */
export interface PromotionMaterial {
  readonly objects: PromotionObjects;
  readonly facts: RecordedFacts & Pick<ToolReview, 'auditHead'>;
}

/** Opens the pull request of a request. `material`: undefined when the tool does not exist. */
export function requestTask(
  { request, namespace, promotion, gitOps }: PendingRequest,
  material: () => Promise<PromotionMaterial | undefined>,
): GitTask {
  const { metadata, spec } = request;
  return {
    kind: 'Request',
    namespace,
    name: metadata.name,
    uid: metadata.uid ?? '',
    gitOps,
    async run({ repository, connection, op }, known) {
      const object = sharedObjectName(namespace, promotion.tool, promotion.digest);
      const proposal = {
        branch: branchOf(spec.nonce, 'share'),
        base: gitOps.branch,
        folder: folderIn(gitOps, { namespace, object }),
        ...knownTo(known),
        draft: async () => {
          const found = await material();
          if (found === undefined) throw new Error('the tool of the request does not exist');
          const decided = { namespace, nonce: spec.nonce, approvedBy: connection.git.approver };
          const review = { ...reviewOfObjects({ ...found.objects, request }, decided), ...found.facts };
          // Its draft would be the revocation, which is a task of its own.
          if (review.promotion.revoked !== undefined) throw new Error('the tool of the request is revoked');
          return pullRequestDraft(review, gitOps);
        },
      };
      return repository.propose(proposal, op);
    },
  };
}
