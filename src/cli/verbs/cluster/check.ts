import { RELEASE_OBJECTS } from '../../../api/cluster.ts';
import { API_VERSION } from '../../../api/names.ts';
import { ApiError, type ResourceType } from '../../../kube/client.ts';
import type { KubeObject } from '../../../kube/store.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError, messageOf } from '../../../lib/errors.ts';
import { printable } from '../../../lib/escape.ts';
import { type Json, member } from '../../../lib/json.ts';
import { callApi } from '../../cluster/api-call.ts';
import { CLUSTER_KINDS } from '../../cluster/cluster-kinds.ts';
import { type Cluster, openCluster, refusalOf } from '../../cluster/cluster.ts';
import type { ClusterOptions } from '../../cluster/options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { cell } from '../../table.ts';

export interface CheckOptions extends ClusterOptions {
  /** Milliseconds to wait until all is well. */
  wait?: number;
  output: 'text' | 'json';
}

interface Finding {
  readonly what: string;
  readonly well: boolean;
  readonly says: string;
}

const apps = (plural: string, kind: string): ResourceType => ({
  group: 'apps',
  version: 'v1',
  plural,
  kind,
  namespaced: true,
});
const WORKLOADS: readonly (readonly [ResourceType, string])[] = [
  [apps('deployments', 'Deployment'), 'temper-operator'],
  [apps('deployments', 'Deployment'), RELEASE_OBJECTS.gateway],
  [apps('statefulsets', 'StatefulSet'), RELEASE_OBJECTS.nats],
];
const PAUSE_MILLISECONDS = 2_000;

/** Is the installation well? Exit 0 when everything is, 1 when something is not. */
export async function check(options: CheckOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const deadline = systemClock.monotonic() + (options.wait ?? 0);
  for (;;) {
    const findings = await look(cluster, io.signal);
    const well = findings.every((finding) => finding.well);
    if (well || systemClock.monotonic() >= deadline) {
      for (const finding of findings) tell(finding, options.output, io);
      return well ? EXIT.ok : EXIT.refused;
    }
    await systemClock.sleep(PAUSE_MILLISECONDS, io.signal);
  }
}

function tell(finding: Finding, output: 'text' | 'json', io: CliIo): void {
  if (output === 'json') writeJsonLine(io, { ...finding });
  else io.out(`${finding.well ? '✓' : '✗'} ${finding.what}: ${printable(finding.says, 500)}\n`);
}

async function look(cluster: Cluster, signal: AbortSignal): Promise<Finding[]> {
  const namespace = cluster.temperNamespace ?? 'temper-system';
  const findings = [await served(cluster, signal)];
  for (const [type, name] of WORKLOADS) findings.push(await ready(cluster, type, { namespace, name }, signal));
  return findings;
}

/** Are our kinds there? Everybody may ask that. */
async function served(cluster: Cluster, signal: AbortSignal): Promise<Finding> {
  const what = `API ${API_VERSION}`;
  try {
    const reply = await callApi(cluster.access, { method: 'GET', path: `/apis/${API_VERSION}` }, signal);
    if (reply.status !== 200) {
      const { message } = refusalOf(reply);
      return {
        what,
        well: false,
        says: `not served (${message}); install the chart with clusterPrerequisites.enabled`,
      };
    }
    return { what, well: true, says: `served, ${CLUSTER_KINDS.length} kinds` };
  } catch (error) {
    return { what, well: false, says: problem(error, signal) };
  }
}

async function ready(
  { kube }: Cluster,
  type: ResourceType,
  ref: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<Finding> {
  const what = `${type.kind} ${ref.namespace}/${ref.name}`;
  try {
    const found = await kube.get<KubeObject & { spec?: Json; status?: Json }>(type, ref, signal);
    if (found === undefined) {
      const isOwn = ref.name !== RELEASE_OBJECTS.nats;
      const says = isOwn
        ? 'does not exist; is Temper in another namespace? --temper-namespace says where'
        : 'not part of this installation';
      return { what, well: !isOwn, says };
    }
    const wanted = member(found.spec, 'replicas') ?? 1;
    const there = member(found.status, 'readyReplicas') ?? 0;
    const says = `${cell(there)} of ${cell(wanted)} ready`;
    if (typeof there === 'number' && there > 0) return { what, well: true, says };
    return { what, well: false, says: `${says}; see kubectl describe pods -n ${ref.namespace}` };
  } catch (error) {
    return { what, well: false, says: problem(error, signal) };
  }
}

function problem(error: unknown, signal: AbortSignal): string {
  if (signal.aborted || !(error instanceof ApiError || isTemperError(error))) throw error;
  return messageOf(error, 500);
}
