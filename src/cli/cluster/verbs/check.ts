import { resourceType } from '../../../kube/client/resource-path.ts';
import { RELEASE_OBJECTS } from '../../../api/cluster.ts';
import { API_VERSION } from '../../../api/names.ts';
import { ApiError, type ResourceType } from '../../../kube/client/kube-client.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError, messageOf } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { type Json, member } from '../../../lib/json.ts';
import { sendRawRequest } from '../raw-request.ts';
import { CLUSTER_KINDS } from '../cluster-kinds.ts';
import { type Cluster, openCluster, errorFrom } from '../cluster.ts';
import type { ClusterOptions } from '../options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { formatCell } from '../../table.ts';

export interface CheckOptions extends ClusterOptions {
  /** Milliseconds to wait until the installation is healthy. */
  wait?: number;
  output: 'text' | 'json';
}

/** The result for one component; one line of `--output json`. */
interface ComponentHealth {
  readonly name: string;
  readonly healthy: boolean;
  readonly message: string;
}

const apps = (plural: string, kind: string): ResourceType => resourceType('apps/v1', plural, kind);
const WORKLOADS: readonly (readonly [ResourceType, string])[] = [
  [apps('deployments', 'Deployment'), 'temper-operator'],
  [apps('deployments', 'Deployment'), RELEASE_OBJECTS.gateway],
  [apps('deployments', 'Deployment'), RELEASE_OBJECTS.egress],
  [apps('statefulsets', 'StatefulSet'), RELEASE_OBJECTS.nats],
];
/** Parts that an installation may leave out. */
const OPTIONAL: ReadonlySet<string> = new Set([RELEASE_OBJECTS.egress, RELEASE_OBJECTS.nats]);
const POLL_MS = 2_000;

/** Checks the health of the installation. Exit 0: every component is healthy; 1: a component is not. */
export async function check(options: CheckOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const deadline = systemClock.monotonic() + (options.wait ?? 0);
  for (;;) {
    const results = await checkAll(cluster, io.signal);
    const isHealthy = results.every((result) => result.healthy);
    if (isHealthy || systemClock.monotonic() >= deadline) {
      for (const result of results) print(result, options.output, io);
      return isHealthy ? EXIT.ok : EXIT.refused;
    }
    await systemClock.sleep(POLL_MS, io.signal);
  }
}

function print(result: ComponentHealth, output: 'text' | 'json', io: CliIo): void {
  if (output === 'json') writeJsonLine(io, { ...result });
  else io.out(`${result.healthy ? '✓' : '✗'} ${result.name}: ${printable(result.message, 500)}\n`);
}

async function checkAll(cluster: Cluster, signal: AbortSignal): Promise<ComponentHealth[]> {
  const namespace = cluster.temperNamespace ?? 'temper-system';
  const results = [await checkApi(cluster, signal)];
  for (const [type, name] of WORKLOADS) results.push(await checkWorkload(cluster, type, { namespace, name }, signal));
  return results;
}

/** Checks that the API server serves the custom resources. Every user may read API discovery. */
async function checkApi(cluster: Cluster, signal: AbortSignal): Promise<ComponentHealth> {
  const name = `API ${API_VERSION}`;
  try {
    const reply = await sendRawRequest(cluster.access, { method: 'GET', path: `/apis/${API_VERSION}` }, signal);
    if (reply.status !== 200) {
      const { message } = errorFrom(reply);
      return {
        name,
        healthy: false,
        message: `not served (${message}); install the chart with clusterPrerequisites.enabled`,
      };
    }
    return { name, healthy: true, message: `served, ${CLUSTER_KINDS.length} kinds` };
  } catch (error) {
    return { name, healthy: false, message: failureText(error, signal) };
  }
}

async function checkWorkload(
  { kube }: Cluster,
  type: ResourceType,
  ref: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<ComponentHealth> {
  const name = `${type.kind} ${ref.namespace}/${ref.name}`;
  try {
    const found = await kube.get<KubeObject & { spec?: Json; status?: Json }>(type, ref, signal);
    if (found === undefined) {
      const isRequired = !OPTIONAL.has(ref.name);
      const message = isRequired
        ? 'does not exist; is Temper installed in another namespace? Set --temper-namespace'
        : 'not part of this installation';
      return { name, healthy: !isRequired, message };
    }
    const desired = member(found.spec, 'replicas') ?? 1;
    const readyReplicas = member(found.status, 'readyReplicas') ?? 0;
    const message = `${formatCell(readyReplicas)} of ${formatCell(desired)} ready`;
    if (typeof readyReplicas === 'number' && readyReplicas > 0) return { name, healthy: true, message };
    return { name, healthy: false, message: `${message}; see kubectl describe pods -n ${ref.namespace}` };
  } catch (error) {
    return { name, healthy: false, message: failureText(error, signal) };
  }
}

function failureText(error: unknown, signal: AbortSignal): string {
  if (signal.aborted || !(error instanceof ApiError || isTemperError(error))) throw error;
  return messageOf(error, 500);
}
