import { LABELS } from '../api/cluster.ts';
import { CONDITIONS } from '../api/v1alpha1/reasons.ts';
import { ApiError, type KubeClient, type ResourceType } from '../kube/client/kube-client.ts';
import type { GaugeSample } from '../telemetry/metrics.ts';
import type { OperatorMetrics } from '../telemetry/temper-metrics.ts';
import { podState } from './pods/pod-state.ts';
import type { ReleasePki } from './pki/release-pki.ts';
import type { Cache } from './kube/cache.ts';
import type { OperatorConfig } from './config.ts';
import type { AdmissionPolicyMonitor } from './admission-policies/monitor.ts';
import type { Pod, StoredAgent } from './kube/types.ts';
import type { WarmPool } from './pool/warm-pool.ts';

export interface OperatorMetricsSource {
  readonly config: Pick<OperatorConfig, 'sandboxClasses'>;
  readonly agents: Cache<StoredAgent>;
  readonly pods: Cache<Pod>;
  readonly pool: WarmPool;
  readonly policyMonitor: AdmissionPolicyMonitor;
  readonly pki: ReleasePki;
  /** The caches of a standby replica would repeat what the leader reports. */
  readonly isLeader: () => boolean;
}

/** Registers gauges that are computed from the caches at each scrape. */
export function registerOperatorGauges(metrics: OperatorMetrics, observed: OperatorMetricsSource): void {
  const { config, agents, pods, pool, policyMonitor, pki, isLeader } = observed;
  const watchAsLeader = (name: Parameters<OperatorMetrics['watchAll']>[0], read: () => GaugeSample[]): void =>
    metrics.watchAll(name, () => (isLeader() ? read() : []));
  watchAsLeader('temper_agents', () => tally(agents.list().map(readinessOf)));
  watchAsLeader('temper_agent_budgets', () => tally(agents.list().flatMap(budgetOf)));
  watchAsLeader('temper_agents_unresponsive', () => [
    { labels: {}, value: agents.list().filter(isUnresponsive).length },
  ]);
  watchAsLeader('temper_pods', () => tally(pods.list().map(podStateOf)));
  watchAsLeader('temper_warm_pods', () =>
    config.sandboxClasses.flatMap(({ name, pool: pools = [] }) => {
      const desired = pools.reduce((sum, { size }) => sum + size, 0);
      const existing = pools.reduce((sum, { namespace }) => sum + pool.available(namespace, name).length, 0);
      const labels = (state: string) => ({ sandbox_class: name, state });
      return [
        { labels: labels('desired'), value: desired },
        { labels: labels('available'), value: existing },
      ];
    }),
  );
  metrics.watchAll('temper_admission_policy_namespaces', () =>
    tally(policyMonitor.states().map((state) => ({ state }))),
  );
  metrics.watchAll('temper_certificate_expiration_timestamp_seconds', () =>
    [...pki.expirations()].map(([certificate, end]) => ({
      labels: { certificate },
      value: Math.floor(end.getTime() / 1_000),
    })),
  );
}

/** Wraps the client and counts its writes. */
export function withWriteMetrics(client: KubeClient, metrics: OperatorMetrics): KubeClient {
  const counted = async <T>({ plural }: ResourceType, verb: string, isDry: boolean, write: Promise<T>): Promise<T> => {
    let outcome = 'failed';
    try {
      const result = await write;
      outcome = result === false ? 'conflict' : 'ok';
      return result;
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) outcome = 'conflict';
      throw error;
    } finally {
      if (!isDry) metrics.count('temper_writes_total', { resource: plural, verb, outcome });
    }
  };
  return {
    get: (type, ref, signal) => client.get(type, ref, signal),
    list: (type, options, signal) => client.list(type, options, signal),
    create: (type, object, signal, options) =>
      counted(type, 'create', options?.dryRun === true, client.create(type, object, signal, options)),
    apply: (type, object, options, signal) =>
      counted(type, 'apply', options.dryRun === true, client.apply(type, object, options, signal)),
    applyStatus: (type, object, options, signal) =>
      counted(type, 'apply-status', options.dryRun === true, client.applyStatus(type, object, options, signal)),
    patch: (type, ref, patch, signal, options) =>
      counted(
        type,
        options?.subresource === undefined ? 'patch' : 'patch-status',
        false,
        client.patch(type, ref, patch, signal, options),
      ),
    delete: (type, ref, options, signal) => counted(type, 'delete', false, client.delete(type, ref, options, signal)),
    createToken: (ref, request, signal) => client.createToken(ref, request, signal),
    canI: (attributes, signal) => client.canI(attributes, signal),
    whoAmI: (signal) => client.whoAmI(signal),
  };
}

export async function* countWakeups(
  wakeups: AsyncIterable<string>,
  metrics: OperatorMetrics | undefined,
): AsyncGenerator<string> {
  for await (const uid of wakeups) {
    metrics?.count('temper_agent_wakeups_total', {});
    yield uid;
  }
}

function readinessOf({ status }: StoredAgent): { ready: string; reason: string } {
  const found = status?.conditions?.find(({ type }) => type === 'Ready');
  if (found === undefined) return { ready: 'Unknown', reason: 'Pending' };
  // Another writer may have set an unknown reason, because status writes are not protected in every installation.
  return { ready: found.status, reason: READY_REASONS.has(found.reason) ? found.reason : 'Other' };
}

function budgetOf({ status }: StoredAgent): { reason: string }[] {
  const found = status?.conditions?.find(({ type }) => type === 'BudgetAvailable');
  return found === undefined ? [] : [{ reason: BUDGET_REASONS.has(found.reason) ? found.reason : 'Other' }];
}

function isUnresponsive({ status }: StoredAgent): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Responsive' && value === 'False') === true;
}

const READY_REASONS = reasonsOf('Ready');
const BUDGET_REASONS = reasonsOf('BudgetAvailable');

function reasonsOf(condition: string): ReadonlySet<string> {
  return new Set(CONDITIONS.Agent.flatMap(({ type, reasons }) => (type === condition ? Object.keys(reasons) : [])));
}

function podStateOf(pod: Pod): { kind: string; state: string } {
  const kind = pod.metadata.labels?.[LABELS.agentUid] === undefined ? 'warm' : 'agent';
  return { kind, state: podState(pod).kind };
}

/** Counts how often each combination of labels occurs. */
function tally(all: readonly Readonly<Record<string, string>>[]): GaugeSample[] {
  const counts = new Map<string, { labels: Readonly<Record<string, string>>; value: number }>();
  for (const labels of all) {
    const key = JSON.stringify(Object.values(labels));
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { labels, value: 1 });
    else known.value += 1;
  }
  return [...counts.values()];
}
