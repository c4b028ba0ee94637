import type { Approval } from '../../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import type { ResourceType } from '../../../kube/client/kube-client.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import type { Digest } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import {
  nonceOf,
  type PromotionObjects,
  reviewOfObjects,
  sharedObjectName,
} from '../../../review/gitops/review-of-objects.ts';
import { exportForGitOps, type GitOpsExportOptions } from '../../tools/gitops/gitops-export.ts';
import type { CliIo } from '../../io.ts';
import { type Cluster, openCluster, toTemperError } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';

export interface ClusterToolExportOptions extends ClusterOptions, GitOpsExportOptions {
  /** Object name, tool name or digest. */
  tool: string;
}

/** Writes the files with which a GitOps controller shares a tool of the cluster, or keeps a revoked one out. */
export async function clusterToolExport(options: ClusterToolExportOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const objects = await promotionObjects(cluster, options.tool, io);
  assertShareable(objects);
  const { namespace, location } = cluster;
  const { artifact, digest, contributors = [] } = objects.tool.spec;
  const exportable = {
    namespace,
    object: sharedObjectName(namespace, artifact.name, digest as Digest),
    digest,
    contributors,
    nonce: nonceOf(objects),
    review: (decided: { nonce: string; approvedBy: string }) => reviewOfObjects(objects, { namespace, ...decided }),
  };
  // `await` is required: the connection is closed when this function returns.
  return await exportForGitOps(exportable, options, location, io);
}

/** The operator would keep its object out of service. One that exists may be exported, with its revocation. */
function assertShareable({ tool, tools }: PromotionObjects): void {
  const { digest, artifact } = tool.spec;
  if (tools.some(({ spec }) => spec.tier === 'Shared' && spec.digest === digest)) return;
  const withheld = tool.status?.conditions?.find(({ type, status }) => type === 'Shareable' && status === 'False');
  if (withheld?.reason !== 'ReportedAnswers') return;
  throw new TemperError(
    'TEMPER_PROMOTION_NOT_READY',
    `"${artifact.name}" cannot be shared: ${printable(withheld.message, 500)}`,
  );
}

async function promotionObjects(cluster: Cluster, target: string, io: CliIo): Promise<PromotionObjects> {
  const tools = await clusterTools(cluster, io);
  const tool = selectTool(tools, target, cluster);
  const [requests, approvals] = await Promise.all([
    listOf<ApprovalRequest & KubeObject>(cluster, 'approvalrequests', io),
    listOf<Approval & KubeObject>(cluster, 'approvals', io),
  ]);
  const request = requests.find(
    ({ spec, status }) =>
      status?.decision === undefined &&
      spec.subject.promotion?.digest === tool.spec.digest &&
      spec.subject.promotion.tier === 'Shared',
  );
  return { tool, approvals, tools, ...(request === undefined ? {} : { request }) };
}

/** All tools of the namespace. */
export function clusterTools(cluster: Cluster, io: CliIo): Promise<(EmergentTool & KubeObject)[]> {
  return listOf<EmergentTool & KubeObject>(cluster, 'emergenttools', io);
}

/** Objects of one digest are one tool; the one that its agent owns says who contributed. */
export function selectTool<T extends EmergentTool>(all: readonly T[], target: string, { location }: Cluster): T {
  const found = all.filter(({ metadata, spec }) => [metadata.name, spec.artifact.name, spec.digest].includes(target));
  const digests = [...new Set(found.map(({ spec }) => spec.digest))];
  if (digests.length > 1) {
    throw new TemperError(
      'TEMPER_USAGE',
      `"${printable(target, 253)}" is the name of several tools in ${location}; give the digest of one: ${printable(digests.join(', '), 800)}`,
    );
  }
  const tool = found.find(({ spec }) => spec.tier === 'Agent') ?? found[0];
  if (tool !== undefined) return tool;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `no tool "${printable(target, 253)}" in ${location}; list them with temper get tools`,
  );
}

async function listOf<T extends KubeObject>(cluster: Cluster, kind: string, io: CliIo): Promise<T[]> {
  const type: ResourceType = clusterKind(kind);
  const { kube, namespace } = cluster;
  return kube.list<T>(type, { namespace }, io.signal).catch((error: unknown) => {
    throw toTemperError(error, `reading ${type.plural}`, cluster);
  });
}
