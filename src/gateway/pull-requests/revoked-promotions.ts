import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { verdictOn } from '../../approvals/verdict.ts';
import { type Digest, isDigest } from '../../lib/canonical.ts';
import type { ApprovalSummary, ToolServiceStatus } from '../cluster/demotions.ts';

/** A promotion to tier Shared that was approved once, and that a later decision took out of service. */
export interface WithdrawnPromotion {
  readonly namespace: string;
  readonly tool: string;
  readonly digest: Digest;
  /** That of the approval. */
  readonly nonce: string;
  /** The object of the deciding Approval. */
  readonly approval: { readonly name: string; readonly uid: string };
  /** RFC 3339. */
  readonly decidedAt: string;
  readonly by: string;
  readonly reason?: string;
}

/**
 * The promotions of one namespace that are approved and revoked or denied, those decided last first. Only an approved one can be in Git and applied from there. The
 * decisions are objects that users cannot delete, so the result does not depend on the objects of the tools. Pure.
 */
export function revokedPromotions(
  namespace: string,
  approvals: readonly ApprovalSummary[],
  tools: readonly ToolServiceStatus[],
): WithdrawnPromotion[] {
  const byDigest = Map.groupBy(approvals, ({ record }) => record.subject.promotion?.digest ?? '');
  const found = [...byDigest].flatMap(([digest, decisions]) => {
    if (!isDigest(digest)) return [];
    const own = tools.filter(({ spec }) => spec.digest === digest);
    return revokedPromotion(namespace, digest, decisions, own) ?? [];
  });
  return found.sort((one, other) => (one.decidedAt < other.decidedAt ? 1 : -1));
}

function revokedPromotion(
  namespace: string,
  digest: Digest,
  decisions: readonly ApprovalSummary[],
  tools: readonly ToolServiceStatus[],
): WithdrawnPromotion | undefined {
  const records = decisions.map(({ record }) => record);
  const approved = lastApproval(records);
  if (approved === undefined) return undefined;
  const shared = tools.find(({ spec }) => spec.tier === 'Shared');
  const tool = shared?.spec.tool ?? approved.subject.promotion?.tool ?? '';
  const nonce = shared?.spec.requestNonce ?? approved.nonce;
  const contributors = tools.flatMap(({ spec }) => spec.contributors ?? []);
  const verdict = verdictOn({ subject: { promotion: { tool, digest, tier: 'Shared' } }, nonce, contributors }, records);
  if (verdict.decision !== 'Revoke' && verdict.decision !== 'Deny') return undefined;
  const { name, by, reason, createdAt: decidedAt } = verdict.approval;
  const uid = decisions.find(({ metadata }) => metadata.name === name)?.metadata.uid;
  if (uid === undefined) return undefined;
  return {
    namespace,
    tool,
    digest,
    nonce,
    approval: { name, uid },
    decidedAt,
    by,
    ...(reason === undefined ? {} : { reason }),
  };
}

function lastApproval(records: readonly ApprovalRecord[]): ApprovalRecord | undefined {
  return records
    .filter(({ decision, subject }) => decision === 'Approve' && subject.promotion?.tier === 'Shared')
    .sort((one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt) || (one.name < other.name ? -1 : 1))
    .at(-1);
}
