import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { type PromotionObjects, reviewOfObjects } from '../../review/gitops/review-of-objects.ts';
import { pullRequestDraft } from '../../review/pull-requests/draft.ts';
import { openPullRequest } from '../../review/pull-requests/open-pull-request.ts';
import type { ToolReview } from '../../review/tool-review.ts';
import type { GitOpsPlace, GitTask } from './follow.ts';
import type { RecordedFacts } from './recorded-facts.ts';

/** An ApprovalRequest for tier Shared whose policy asks for a pull request. */
export interface PendingRequest {
  readonly request: ApprovalRequest;
  readonly namespace: string;
  readonly gitOps: GitOpsPlace;
}

/** The objects of a promotion, and what else is recorded about it. */
export interface PromotionMaterial {
  readonly objects: PromotionObjects;
  readonly facts: RecordedFacts & Pick<ToolReview, 'auditHead'>;
}

/** Opens the pull request of a request. `material`: undefined when the tool does not exist. */
export function requestTask(
  { request, namespace, gitOps }: PendingRequest,
  material: () => Promise<PromotionMaterial | undefined>,
): GitTask {
  const { metadata, spec } = request;
  return {
    kind: 'Request',
    namespace,
    name: metadata.name,
    uid: metadata.uid ?? '',
    gitOps,
    async run({ server, connection, op }, known) {
      if (known?.number !== undefined && known.state !== 'Failed') return server.get(known.number, op);
      const found = await material();
      if (found === undefined) throw new Error('the tool of the request does not exist');
      const { approver } = connection.git;
      const { objects, facts } = found;
      const decided = { namespace, nonce: spec.nonce, approvedBy: approver };
      const review = { ...reviewOfObjects({ ...objects, request }, decided), ...facts };
      return openPullRequest(server, pullRequestDraft(review, gitOps), op);
    },
  };
}
