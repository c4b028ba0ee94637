import type { Approval, ApprovalSpec } from '../../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../../api/v1alpha1/approvalrequest.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { shortDigest } from '../../../lib/canonical.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { type Cluster, openCluster, toTemperError } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { approvalObject, createApproval } from './approval-object.ts';
import { requestChanges } from './request-review.ts';

export interface DecideOptions extends ClusterOptions {
  decision: 'Approve' | 'Deny';
  /** The name of the ApprovalRequest. */
  request: string;
  reason: string;
  output: 'text' | 'json';
}

type FoundRequest = KubeObject & ApprovalRequest;

/** Creates the Approval of a request in the name of the caller: the same object as `kubectl apply` of a manifest creates. */
export async function decide(options: DecideOptions, io: CliIo): Promise<number> {
  const { decision, reason } = options;
  await using cluster = await openCluster(options, io);
  const found = await undecidedRequest(cluster, options.request, io);
  const { metadata, spec } = found;
  if (decision === 'Approve' && options.output === 'text') await showChanges(cluster, found, io);
  const approval = await approvalObject(
    cluster,
    { name: metadata.name, decision, nonce: spec.nonce, request: metadata.name, reason, subject: spec.subject },
    io,
  );
  const created = await createApproval(cluster, approval, io);
  report(created, { decision, subject: spec.subject }, options, cluster, io);
  return EXIT.ok;
}

async function undecidedRequest(cluster: Cluster, name: string, { signal }: CliIo): Promise<FoundRequest> {
  const { kube, namespace, location } = cluster;
  const type = clusterKind('approvalrequests');
  const found = await kube.get<FoundRequest>(type, { namespace, name }, signal).catch((error: unknown) => {
    throw toTemperError(error, `reading approvalrequests ${name}`, cluster);
  });
  const shown = printable(name, 253);
  if (found === undefined)
    throw new TemperError(
      'TEMPER_NOT_FOUND',
      `no approvalrequest "${shown}" in ${location}; list them with temper requests`,
    );
  const { decision, decidedBy = 'the operator' } = found.status ?? {};
  if (decision === undefined) return found;
  throw new TemperError(
    'TEMPER_USAGE',
    `approvalrequest "${shown}" in ${location} is already decided: ${decision} by ${printable(decidedBy, 120)}; a decision is final`,
  );
}

/** What the approver approves. A user who may decide but not read tools gets a line instead. */
async function showChanges(cluster: Cluster, found: FoundRequest, io: CliIo): Promise<void> {
  try {
    io.out((await requestChanges(cluster, found, io)) ?? '');
  } catch (error) {
    if (!isTemperError(error)) throw error;
    io.error(`note: the difference to the replaced version cannot be shown: ${printable(error.message, 400)}\n`);
  }
}

function report(
  name: string,
  { decision, subject }: Pick<ApprovalSpec, 'decision' | 'subject'>,
  { output }: DecideOptions,
  { location, namespace }: Cluster,
  io: CliIo,
): void {
  if (output === 'json') {
    writeJsonLine(io, { approval: name, decision, location, subject });
    return;
  }
  const { promotion, call } = subject;
  const about = promotion?.digest ?? call?.argumentsDigest;
  const digest = about === undefined ? '' : ` (digest ${shortDigest(about)}…)`;
  io.out(
    `approval/${printable(name, 253)} created in ${location}${digest} · ${effectOf(decision, subject, namespace)}\n`,
  );
}

function effectOf(
  decision: Approval['spec']['decision'],
  { promotion, call }: ApprovalSpec['subject'],
  namespace: string,
): string {
  const isApproved = decision === 'Approve';
  if (promotion !== undefined)
    return isApproved ? `tool becomes ${promotion.tier} in ${printable(namespace, 63)}` : 'tool keeps its tier';
  if (call !== undefined) return isApproved ? 'the agent may make this call once' : 'the agent may not make this call';
  return isApproved ? 'the request is approved' : 'the request is denied';
}
