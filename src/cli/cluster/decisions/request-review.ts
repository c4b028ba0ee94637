import type { Approval } from '../../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { reviewOfAgentRequest, reviewOfObjects } from '../../../review/gitops/review-of-objects.ts';
import { withJudged } from '../../../review/judged.ts';
import { reviewDocument } from '../../../review/review-document.ts';
import { changeSections } from '../../../review/sections/changes.ts';
import type { ToolReview } from '../../../review/tool-review.ts';
import { terminalText } from '../../review/terminal-page.ts';
import type { CliIo } from '../../io.ts';
import { type Cluster, toTemperError } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';

type Found<T> = KubeObject & T;

/** A source has fewer lines. Tests whose JSON text has more are not read line by line. */
const MAX_BOX_LINES = 33_000;
/** Of one part of the tool, before the line that reports a decision. */
const MAX_CHANGED_LINES = 120;

/**
 * What a reviewer of a promotion reads: source, schemas, tests, requirements, evidence, and the difference to the version that the tool
 * replaces. Undefined for a request about anything else.
 */
export async function requestReview(cluster: Cluster, found: KubeObject, io: CliIo): Promise<string | undefined> {
  const review = await reviewOf(cluster, found as Found<ApprovalRequest>, io);
  if (review === undefined || typeof review === 'string') return review;
  const more = `kubectl get approvalrequest,emergenttool -o yaml has them`;
  return terminalText(reviewDocument(withJudged(review)), { maxBoxLines: MAX_BOX_LINES, more }, io);
}

/** The difference to the version that the tool of the request replaces. Undefined when it replaces none. */
export async function requestChanges(
  cluster: Cluster,
  request: Found<ApprovalRequest>,
  io: CliIo,
): Promise<string | undefined> {
  const review = await reviewOf(cluster, request, io);
  if (review === undefined || typeof review === 'string' || review.replaces === undefined) return undefined;
  const more = `kubectl temper requests ${printable(request.metadata.name, 253)} shows them`;
  return terminalText(changeSections(review), { maxBoxLines: MAX_CHANGED_LINES, more }, io);
}

/** A text says why a tool cannot be shown. */
async function reviewOf(
  cluster: Cluster,
  request: Found<ApprovalRequest>,
  io: CliIo,
): Promise<ToolReview | string | undefined> {
  const { subject, nonce } = request.spec;
  if (subject.promotion === undefined) return undefined;
  const { namespace } = cluster;
  const list = <T>(kind: string): Promise<Found<T>[]> =>
    cluster.kube.list<Found<T>>(clusterKind(kind), { namespace }, io.signal).catch((error: unknown) => {
      throw toTemperError(error, `reading ${kind}`, cluster);
    });
  const [tools, approvals] = await Promise.all([list<EmergentTool>('tools'), list<Approval>('approvals')]);
  return readable(() => {
    const ofAgent = reviewOfAgentRequest(request, tools);
    if (ofAgent !== undefined) return ofAgent;
    const tool = tools.find(({ spec }) => spec.digest === subject.promotion?.digest);
    if (tool === undefined) return `No tool with digest ${subject.promotion?.digest} exists any more.\n`;
    const decided = { namespace, nonce, approvedBy: 'undecided' };
    return reviewOfObjects({ tool, request, approvals, tools }, decided);
  });
}

function readable(read: () => ToolReview | string): ToolReview | string {
  try {
    return read();
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_MANIFEST_INVALID')) throw error;
    return `The tool cannot be shown for review: ${printable(error.message, 1_000)}\n`;
  }
}
