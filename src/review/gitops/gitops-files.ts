import { createHash } from 'node:crypto';
import { API_VERSION } from '../../api/names.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { GITOPS_ANNOTATIONS } from '../../approvals/gitops-annotations.ts';
import { knownHeadText } from '../../audit/known-head.ts';
import type { JsonObject } from '../../lib/json.ts';
import { visibleLine } from '../page/visible-text.ts';
import { renderHtml } from '../render/html.ts';
import { renderMarkdown } from '../render/markdown.ts';
import { reviewDocument } from '../review-document.ts';
import type { ToolReview } from '../tool-review.ts';
import { manifestText } from './manifest-text.ts';

/** One file of an export. The path is relative, and contains no text of the tool but its checked name. */
export interface GitOpsFile {
  readonly path: string;
  readonly text: string;
}

export const TOOL_FILE = 'emergenttool.yaml';
export const APPROVAL_FILE = 'approval.yaml';
export const REVOCATION_FILE = 'revocation.yaml';
/** Not `.json`: kubectl and GitOps controllers read each such file of a folder as a manifest. */
export const AUDIT_HEAD_FILE = 'audit-head.jsonl';
/** The page for reviewers. */
export const REVIEW_FILES = ['review.md', 'review.html'] as const;

const MAX_REASON = 1_500;

/** What the decisions of a promotion say. */
export type PromotionFacts = Pick<ToolReview, 'namespace' | 'object' | 'digest' | 'promotion'> & {
  readonly artifact: Pick<ToolReview['artifact'], 'name'>;
};

/** The folder of one tool, below the folder of the export. */
export function gitOpsFolder({ namespace, object }: Pick<ToolReview, 'namespace' | 'object'>): string {
  return `${namespace}/${object}`;
}

/**
 * The files of one promotion: the tool and its Approval, which a GitOps controller applies, the Approval that revokes it, if it is revoked,
 * the page for reviewers, and the signed head of the audit stream. Equal reviews give equal files.
 */
export function gitOpsFiles(review: ToolReview): GitOpsFile[] {
  const folder = gitOpsFolder(review);
  const document = reviewDocument(review);
  const { auditHead } = review;
  const manifests: [string, EmergentTool | Approval][] = [
    [TOOL_FILE, sharedTool(review)],
    [APPROVAL_FILE, approvalOf(review)],
  ];
  return [
    ...manifests.map(([name, object]) => ({
      path: `${folder}/${name}`,
      text: manifestText(object as unknown as JsonObject),
    })),
    ...(review.promotion.revoked === undefined ? [] : [revocationFile(review)]),
    { path: `${folder}/${REVIEW_FILES[0]}`, text: renderMarkdown(document) },
    { path: `${folder}/${REVIEW_FILES[1]}`, text: renderHtml(document, `Review of ${review.artifact.name}`) },
    ...(auditHead === undefined ? [] : [{ path: `${folder}/${AUDIT_HEAD_FILE}`, text: knownHeadText(auditHead) }]),
  ];
}

/** The file that revokes a promotion. It needs nothing of the tool but its name and digest. */
export function revocationFile(facts: PromotionFacts): GitOpsFile {
  const text = manifestText(revocationOf(facts) as unknown as JsonObject);
  return { path: `${gitOpsFolder(facts)}/${REVOCATION_FILE}`, text };
}

function sharedTool({ namespace, object, artifact, digest, contributors, promotion }: ToolReview): EmergentTool {
  return {
    apiVersion: API_VERSION,
    kind: 'EmergentTool',
    metadata: { name: object, namespace },
    spec: {
      artifact,
      digest,
      tier: 'Shared',
      ...(contributors.length === 0 ? {} : { contributors: [...contributors] }),
      requestNonce: promotion.nonce,
    },
  };
}

function approvalOf(review: ToolReview): Approval {
  return decisionOf(review, approvalName(review), 'Approve', 'merged in Git');
}

/** Approvals are immutable, so a revocation is an object of its own; it outranks the approval. */
function revocationOf(review: PromotionFacts): Approval {
  const { revoked } = review.promotion;
  const reason = revoked?.reason === undefined ? '' : `: ${revoked.reason}`;
  const text = visibleLine(`revoked by ${revoked?.by ?? ''}${reason}`, MAX_REASON);
  return decisionOf(review, `${approvalName(review)}-revoke`, 'Revoke', text);
}

/** A request with a new nonce gets an object of its own. */
function approvalName({ object, promotion }: PromotionFacts): string {
  return `${object}-${createHash('sha256').update(promotion.nonce).digest('hex').slice(0, 12)}`;
}

function decisionOf(review: PromotionFacts, name: string, decision: 'Approve' | 'Revoke', reason: string): Approval {
  const { namespace, artifact, digest, promotion } = review;
  return {
    apiVersion: API_VERSION,
    kind: 'Approval',
    metadata: { name, namespace, annotations: { ...GITOPS_ANNOTATIONS } },
    spec: {
      decision,
      nonce: promotion.nonce,
      ...(promotion.request === undefined ? {} : { request: promotion.request }),
      reason,
      approvedBy: { username: promotion.approvedBy },
      subject: { promotion: { tool: artifact.name, digest, tier: 'Shared' } },
    },
  };
}
