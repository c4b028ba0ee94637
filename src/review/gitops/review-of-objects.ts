import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest, PromotionReview } from '../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { approvalRecord } from '../../approvals/approval-record.ts';
import { verdictOn } from '../../approvals/verdict.ts';
import { type Digest, digestOf, isDigest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { objectName } from '../../tempering/registry/object-name.ts';
import type { ReplacedTool, RevokedPromotion, ToolReview } from '../tool-review.ts';

/** The objects of one namespace that a promotion to tier Shared consists of. */
export interface PromotionObjects {
  /** The tool, of either tier. */
  readonly tool: EmergentTool;
  /** The request for its promotion to tier Shared, when there is one. */
  readonly request?: ApprovalRequest;
  readonly approvals: readonly Approval[];
  /** All tools of the namespace. */
  readonly tools: readonly EmergentTool[];
}

/** The name of the Shared object of a tool. */
export function sharedObjectName(namespace: string, tool: string, digest: Digest): string {
  return objectName(tool, 'Shared', `${namespace}/`, digest);
}

/**
 * The nonce that the promotion already has: that of its open request, or of the Shared object. Undefined when it has none yet.
 */
export function nonceOf({ tool, request, tools }: PromotionObjects): string | undefined {
  if (request !== undefined) return request.spec.nonce;
  const shared = tools.find(({ spec }) => spec.tier === 'Shared' && spec.digest === tool.spec.digest);
  return shared?.spec.requestNonce;
}

/** Throws TEMPER_MANIFEST_INVALID for a tool whose digest is not that of its artifact, or that lacks its source. */
export function reviewOfObjects(
  objects: PromotionObjects,
  { namespace, nonce, approvedBy }: { namespace: string; nonce: string; approvedBy: string },
): ToolReview {
  const { tool, request, approvals } = objects;
  const { artifact, contributors = [] } = tool.spec;
  const digest = verifiedDigest(tool.metadata.name, artifact, tool.spec.digest);
  const revoked = revocationOf(approvals, tool.spec, nonce);
  const replaces = replacedTool(objects);
  return {
    namespace,
    object: sharedObjectName(namespace, artifact.name, digest),
    artifact,
    digest,
    contributors,
    promotion: {
      ...(tool.spec.tier === 'Agent' ? { from: 'Agent' } : {}),
      nonce,
      approvedBy,
      ...(request === undefined
        ? {}
        : { request: request.metadata.name, summary: request.spec.summary, risk: request.spec.risk }),
      ...(revoked === undefined ? {} : { revoked }),
    },
    ...(replaces === undefined ? {} : { replaces }),
    ...evidenceOf(request),
    ...auditOf(tool),
    provenance: [],
  };
}

/** The review of a request for tier Agent, which has the tool itself. Undefined for another one; throws as `reviewOfObjects` does. */
export function reviewOfAgentRequest(request: ApprovalRequest, tools: readonly EmergentTool[]): ToolReview | undefined {
  const { review, subject, nonce, summary, risk, agent } = request.spec;
  const { artifact } = review ?? {};
  if (artifact === undefined || subject.promotion?.tier !== 'Agent') return undefined;
  const { namespace = '', name } = request.metadata;
  const digest = verifiedDigest(name, artifact, subject.promotion.digest);
  const replaces = earlierOfAgent(tools, { agent, artifact, digest });
  return {
    namespace,
    object: '',
    artifact,
    digest,
    contributors: [`agent/${agent.name}`],
    promotion: { from: 'Session', to: 'Agent', nonce, approvedBy: 'undecided', request: name, summary, risk },
    ...(replaces === undefined ? {} : { replaces }),
    ...evidenceOf(request),
    provenance: [],
  };
}

/** The newest other version of the name that the agent had at tier Agent, in service or not. */
function earlierOfAgent(
  tools: readonly EmergentTool[],
  { agent, artifact, digest }: { agent: ApprovalRequest['spec']['agent']; artifact: ToolArtifact; digest: string },
): ReplacedTool | undefined {
  const isEarlier = ({ metadata, spec }: EmergentTool): boolean =>
    spec.tier === 'Agent' &&
    spec.artifact.name === artifact.name &&
    spec.digest !== digest &&
    (metadata.ownerReferences ?? []).some(({ uid }) => uid === agent.uid);
  const created = ({ metadata }: EmergentTool): string => metadata.creationTimestamp ?? '';
  return tools
    .filter(isEarlier)
    .toSorted((one, other) => (created(one) < created(other) ? 1 : -1))
    .map(replacedArtifact)
    .find((found) => found !== undefined);
}

/** What the operator wrote into the status of the object, when fresh agents compared the tool. */
function auditOf({ status }: EmergentTool): Pick<ToolReview, 'audit'> {
  if (status?.audit === undefined) return {};
  const { auditedAt: time, ...audit } = status.audit;
  return { audit: { time, ...audit } };
}

/** What the operator wrote into the request, when there is one. */
function evidenceOf(
  request: ApprovalRequest | undefined,
): Pick<ToolReview, 'tainted' | 'verification' | 'uses' | 'verdicts' | 'questions' | 'requestHead'> {
  const {
    tainted,
    verification,
    uses,
    usedBy = [],
    verdicts = [],
    questions = [],
    agents = [],
    auditHead,
  } = request?.spec.review ?? {};
  return {
    ...(tainted === undefined ? {} : { tainted }),
    ...(questions.length === 0 ? {} : { questions }),
    ...(verification === undefined ? {} : { verification: verificationOf(verification) }),
    ...(uses === undefined ? {} : { uses: { ...uses, agents, usedBy } }),
    ...(auditHead === undefined ? {} : { requestHead: auditHead }),
    verdicts: verdicts.map(({ confidencePercent, ...verdict }) => ({
      ...verdict,
      confidence: confidencePercent / 100,
    })),
  };
}

function verificationOf(
  figures: NonNullable<PromotionReview['verification']>,
): NonNullable<ToolReview['verification']> {
  const { tests, failedTests, reruns, successes, rootMessages, observedAnswers, reportedAnswers } = figures;
  return {
    tests: { passed: tests - failedTests, failed: failedTests, problems: [] },
    reruns: { succeeded: successes, total: reruns, rootMessages, observedAnswers, reportedAnswers },
  };
}

function verifiedDigest(object: string, artifact: ToolArtifact, digest: string): Digest {
  const { mode, source } = artifact.implementation;
  const name = printable(object, 253);
  if (mode === 'Sandbox' && source === undefined) {
    throw new TemperError(
      'TEMPER_MANIFEST_INVALID',
      `${name}: spec.artifact.implementation.source is not in the object, so the tool cannot be shared; set forge.persistSource and forge it again`,
    );
  }
  if (isDigest(digest) && digestOf(artifact as unknown as JsonObject) === digest) return digest;
  throw new TemperError(
    'TEMPER_MANIFEST_INVALID',
    `${name}: the digest is not that of the artifact; forge the tool again`,
  );
}

/** The revocation that keeps the tool out, by the rule that operator and gateway apply. */
function revocationOf(
  approvals: readonly Approval[],
  { artifact, digest }: EmergentTool['spec'],
  nonce: string,
): RevokedPromotion | undefined {
  const subject = { promotion: { tool: artifact.name, digest, tier: 'Shared' } } as const;
  const verdict = verdictOn({ subject, nonce }, approvals.map(approvalRecord));
  if (verdict.decision !== 'Revoke') return undefined;
  const { by, reason } = verdict.approval;
  return { by, ...(reason === undefined ? {} : { reason }) };
}

/** The version that the request names, which need not be in service any more; without a request the active Shared one. */
function replacedTool({ tool: { spec }, request, tools }: PromotionObjects): ReplacedTool | undefined {
  const named = request?.spec.review?.replaces?.digest;
  const isEarlier = (other: EmergentTool): boolean =>
    named === undefined ? isActiveShared(other, spec) : other.spec.digest === named;
  return tools
    .filter(isEarlier)
    .map(replacedArtifact)
    .find((found) => found !== undefined);
}

function isActiveShared({ spec, status }: EmergentTool, { artifact, digest }: EmergentTool['spec']): boolean {
  return (
    spec.tier === 'Shared' && spec.artifact.name === artifact.name && spec.digest !== digest && status?.active === true
  );
}

/** Undefined for an object whose artifact is not that of its digest: a difference to it would say nothing. */
function replacedArtifact({ spec: { artifact, digest } }: EmergentTool): ReplacedTool | undefined {
  return digestOf(artifact as unknown as JsonObject) === digest ? { artifact, digest } : undefined;
}
