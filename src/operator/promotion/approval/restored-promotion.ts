import type { ApprovalRequest, PromotionReview } from '../../../api/v1alpha1/approvalrequest.ts';
import type { JudgeVerdict } from '../../../forge/types.ts';
import { isDigest } from '../../../lib/canonical.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { RerunFigures } from '../../../tempering/promotion/promotion-rules.ts';
import { artifactProblem } from '../../../tempering/registry/stored-artifact.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import type { Stored } from '../../kube/types.ts';

export type RequestObject = Stored<ApprovalRequest>;
type Awaiting = Extract<PromotionRecord, { state: 'AwaitingApproval' }>;

/**
 * The promotion that waits for the decision of the request, as NATS had it. Undefined when the request does not have everything that the
 * decision rests on. Pure.
 */
export function restoredPromotion(
  request: RequestObject,
  { attempt, since }: { attempt: string; since: string },
): Awaiting | undefined {
  const { metadata, spec } = request;
  const tool = restoredTool(request);
  const { tainted, verification, verdicts = [], questions = [] } = spec.review ?? {};
  if (tool === undefined || tainted === undefined || verification === undefined) return undefined;
  return {
    agent: { namespace: metadata.namespace, ...spec.agent },
    tool: tool.artifact.name,
    digest: tool.digest,
    session: '',
    restored: { request: metadata.name, tainted },
    attempt,
    since,
    state: 'AwaitingApproval',
    request: metadata.name,
    nonce: spec.nonce,
    figures: figuresOf(verification),
    // Only the panel reads them, before the request.
    facts: {},
    verdicts: verdicts.map(verdictOf),
    questions: questions.map(({ topic, reason, cases }) => ({
      topic,
      reason,
      cases: cases.map((one) => ({ ...one, reason })),
    })),
  };
}

/** The tool of the request, as its session had it. Undefined when the artifact is not the one of the digest. Pure. */
export function restoredTool({ metadata, spec }: RequestObject): RegisteredTool | undefined {
  const { artifact } = spec.review ?? {};
  const { digest } = spec.subject.promotion ?? {};
  if (artifact === undefined || !isDigest(digest) || artifactProblem(artifact, digest) !== undefined) return undefined;
  return {
    object: `approvalrequests/${metadata.name}`,
    artifact,
    digest,
    tier: 'Session',
    owner: { agent: spec.agent.name, namespace: metadata.namespace, session: '' },
    contributors: [`agent/${spec.agent.name}`],
    verdicts: [],
    authorModel: '',
    sourceWithheld: false,
    acceptedAt: metadata.creationTimestamp ?? '',
    active: true,
  };
}

function figuresOf({ rootMessages, ...figures }: NonNullable<PromotionReview['verification']>): RerunFigures {
  return { ...figures, distinctInputs: rootMessages };
}

function verdictOf({ confidencePercent, ...verdict }: NonNullable<PromotionReview['verdicts']>[number]): JudgeVerdict {
  return { ...verdict, confidence: confidencePercent / 100 };
}
