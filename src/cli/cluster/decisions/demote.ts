import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { shortDigest } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { ulids } from '../../../lib/ids.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { type Cluster, openCluster, toTemperError } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { approvalObject, createApproval } from './approval-object.ts';

export interface DemoteOptions extends ClusterOptions {
  /** The name of an EmergentTool, the name that models use, or a digest. */
  tool: string;
  reason: string;
  output: 'text' | 'json';
}

type FoundTool = KubeObject & EmergentTool;

/** Creates the Approval that revokes a tool: it leaves every view of the namespace, at every tier, until a new request is approved. */
export async function demote(options: DemoteOptions, io: CliIo): Promise<number> {
  const { reason, output } = options;
  await using cluster = await openCluster(options, io);
  const { spec, metadata } = await findTool(cluster, options.tool, io);
  const { artifact, digest, tier, requestNonce = ulids.next('nonce') } = spec;
  const subject = { promotion: { tool: artifact.name, digest, tier } };
  const approval = await approvalObject(
    cluster,
    { name: metadata.name, decision: 'Revoke', nonce: requestNonce, reason, subject },
    io,
  );
  const name = await createApproval(cluster, approval, io);
  const { location } = cluster;
  if (output === 'json') writeJsonLine(io, { approval: name, decision: 'Revoke', location, subject });
  else
    io.out(
      `approval/${name} created in ${location} (digest ${shortDigest(digest)}…) · ${printable(artifact.name, 63)} leaves service in ${printable(cluster.namespace, 63)}\n`,
    );
  return EXIT.ok;
}

/** The tool of this name. Of the objects of one digest the Shared one, because its nonce ends the approval that Git may hold. */
async function findTool(cluster: Cluster, target: string, { signal }: CliIo): Promise<FoundTool> {
  const { kube, namespace, location } = cluster;
  const type = clusterKind('tools');
  const all = await kube.list<FoundTool>(type, { namespace }, signal).catch((error: unknown) => {
    throw toTemperError(error, 'reading emergenttools', cluster);
  });
  const found = all.filter(({ metadata, spec }) => [metadata.name, spec.digest, spec.artifact.name].includes(target));
  const shown = printable(target, 253);
  if (found.length === 0)
    throw new TemperError('TEMPER_NOT_FOUND', `no tool "${shown}" in ${location}; list them with temper get tools`);
  const named = found.filter(({ metadata }) => metadata.name === target);
  const candidates = named.length > 0 ? all.filter(({ spec }) => spec.digest === named[0]?.spec.digest) : found;
  const digests = new Set(candidates.map(({ spec }) => spec.digest));
  const [tool] = [...candidates].sort((one, other) => rank(one) - rank(other));
  if (tool !== undefined && digests.size === 1) return tool;
  const names = candidates.map(({ metadata }) => metadata.name).join(', ');
  throw new TemperError(
    'TEMPER_USAGE',
    `${digests.size} versions of "${shown}" exist in ${location}; name one of the objects: ${printable(names, 1_000)}`,
  );
}

function rank({ spec }: FoundTool): number {
  return spec.tier === 'Shared' ? 0 : 1;
}
