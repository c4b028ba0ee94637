import type { Approval } from '../../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { printable, printableDocument } from '../../../lib/printable.ts';
import { reviewOfAgentRequest, reviewOfObjects } from '../../../review/gitops/review-of-objects.ts';
import { withJudged } from '../../../review/judged.ts';
import { renderMarkdown } from '../../../review/render/markdown.ts';
import { reviewDocument } from '../../../review/review-document.ts';
import type { ToolReview } from '../../../review/tool-review.ts';
import type { CliIo } from '../../io.ts';
import { type Cluster, toTemperError } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';

type Found<T> = KubeObject & T;

/**
 * What a reviewer of a promotion reads: source, schemas, tests, requirements, and the difference to the version that the tool replaces.
 * Undefined for a request about anything else, and for one whose tool is gone.
 */
export async function requestReview(cluster: Cluster, found: KubeObject, io: CliIo): Promise<string | undefined> {
  const request = found as Found<ApprovalRequest>;
  const { subject, nonce } = request.spec;
  if (subject.promotion === undefined) return undefined;
  const ofAgent = reviewText(() => reviewOfAgentRequest(request));
  if (ofAgent !== undefined) return ofAgent;
  const { namespace } = cluster;
  const list = <T>(kind: string): Promise<Found<T>[]> =>
    cluster.kube.list<Found<T>>(clusterKind(kind), { namespace }, io.signal).catch((error: unknown) => {
      throw toTemperError(error, `reading ${kind}`, cluster);
    });
  const [tools, approvals] = await Promise.all([list<EmergentTool>('tools'), list<Approval>('approvals')]);
  const tool = tools.find(({ spec }) => spec.digest === subject.promotion?.digest);
  if (tool === undefined) return `No tool with digest ${subject.promotion.digest} exists any more.\n`;
  const objects = { tool, request, approvals, tools };
  return reviewText(() => reviewOfObjects(objects, { namespace, nonce, approvedBy: 'undecided' }));
}

function reviewText(read: () => ToolReview | undefined): string | undefined {
  try {
    const review = read();
    return review === undefined ? undefined : printableDocument(renderMarkdown(reviewDocument(withJudged(review))));
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_MANIFEST_INVALID')) throw error;
    return `The tool cannot be shown for review: ${printable(error.message, 1_000)}\n`;
  }
}
