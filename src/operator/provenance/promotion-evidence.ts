import type { ApprovalRequest, PromotionReview } from '../../api/v1alpha1/approvalrequest.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { type Stored, TYPES } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

export type PromotionEvidence = Pick<PromotionReview, 'verification' | 'verdicts'>;

/**
 * The figures and verdicts that the operator wrote into the request for tier Shared. Empty without a request, such as on a cluster that was
 * rebuilt from Git, and for a request with another nonce than the tool. Throws ApiError.
 */
export async function promotionEvidence(
  client: Pick<KubeClient, 'get'>,
  { metadata: { namespace }, facts }: StoredTool,
  name: string | undefined,
  signal: AbortSignal,
): Promise<PromotionEvidence> {
  if (name === undefined) return {};
  const found = await client.get<Stored<ApprovalRequest>>(TYPES.approvalRequests, { namespace, name }, signal);
  const { nonce, subject, review } = found?.spec ?? {};
  if (nonce !== facts.requestNonce || subject?.promotion?.digest !== facts.digest) return {};
  const { verification, verdicts } = review ?? {};
  return {
    ...(verification === undefined ? {} : { verification }),
    ...(verdicts === undefined ? {} : { verdicts }),
  };
}
