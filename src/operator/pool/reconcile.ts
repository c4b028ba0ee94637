import type { KubeClient } from '../../kube/client/kube-client.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { printable } from '../../lib/printable.ts';
import type { Logger } from '../../telemetry/log.ts';
import { podAnnotations } from '../agent/apply.ts';
import { removePod } from '../pods/pod-ownership.ts';
import { type QuotaReleases, isQuotaError } from '../pods/quota-releases.ts';
import { warmPodName } from '../pods/pod-name.ts';
import { type PodTemplate, type PodTemplates, podLabels } from '../pods/pod-template.ts';
import { parseKey } from '../kube/cache.ts';
import type { OperatorConfig, SandboxClass } from '../config.ts';
import type { AdmissionPolicyMonitor } from '../admission-policies/monitor.ts';
import { FIELD_MANAGER, type Pod, TYPES } from '../kube/types.ts';
import type { NamespaceObjects } from '../namespace/prepare.ts';
import { planPool, planRemoval } from './plan.ts';
import type { WarmPool } from './warm-pool.ts';

export interface PoolDeps {
  readonly client: KubeClient;
  readonly config: OperatorConfig;
  readonly templates: PodTemplates;
  readonly pool: WarmPool;
  readonly namespaces: NamespaceObjects;
  readonly ids: IdGenerator;
  readonly policyMonitor: AdmissionPolicyMonitor;
  readonly quotaReleases: QuotaReleases;
}

const RETRY_MS = 30_000;
/** In a new namespace the policies come into force a moment later. */
const NOT_ENFORCED_RETRY_MS = 2_000;

/** The namespace does not exist: the installation names it first, and a namespace that is created sends the operator nothing. */
const NO_NAMESPACE_RETRY_MS = 10_000;

interface PoolContext {
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Reconciles the warm pods of a key `namespace/class`. */
export async function reconcilePool(deps: PoolDeps, key: string, context: PoolContext): Promise<ReconcileResult> {
  try {
    return await reconcile(deps, key, context);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    context.log.info({ error: printable(error.message, 500) }, 'no warm pod is created before its namespace exists');
    return { kind: 'requeueAfter', afterMs: NO_NAMESPACE_RETRY_MS };
  }
}

async function reconcile(deps: PoolDeps, key: string, { log, signal }: PoolContext): Promise<ReconcileResult> {
  const { namespace, name } = parseKey(key);
  const warm = deps.pool.available(namespace, name);
  const sandboxClass = deps.config.sandboxClasses.find((candidate) => candidate.name === name);
  if (sandboxClass === undefined) {
    // The class was renamed or removed, so no agent can ever claim its pods.
    for (const pod of planRemoval(warm)) await removePod(deps.client, pod, signal);
    return { kind: 'done' };
  }
  const template = deps.templates.get(sandboxClass);
  const { remove, create: make } = planPool(warm, template, poolSize(sandboxClass, namespace));
  for (const pod of remove) await removePod(deps.client, pod, signal);
  if (make === 0) return { kind: 'done' };
  if ((await deps.policyMonitor.state(namespace, signal)).kind === 'notEnforced')
    return { kind: 'requeueAfter', afterMs: NOT_ENFORCED_RETRY_MS };
  const preparation = await deps.namespaces.prepare(namespace, signal);
  if (preparation.kind === 'waiting') return { kind: 'requeueAfter', afterMs: 1_000 };
  if (preparation.kind === 'altered') {
    log.warn({ error: preparation.message }, 'no warm pod is created');
    return { kind: 'requeueAfter', afterMs: RETRY_MS };
  }
  for (let made = 0; made < make; made += 1) {
    const object = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: warmPodName(name, deps.ids.next('warm')),
        namespace,
        labels: podLabels(template),
        annotations: podAnnotations(template),
      },
      spec: template.spec,
    };
    try {
      deps.pool.onCreated(await deps.client.create<Pod>(TYPES.pods, object, signal, { manager: FIELD_MANAGER }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      // The pods that this one replaces still have their share of the quota.
      const afterMs = isQuotaError(error) ? deps.quotaReleases.retryAfterMs(namespace) : undefined;
      if (afterMs !== undefined) return { kind: 'requeueAfter', afterMs };
      log.warn({ error: printable(error.message, 500) }, 'the API server rejected a warm pod');
      return { kind: 'requeueAfter', afterMs: RETRY_MS };
    }
  }
  return { kind: 'done' };
}

export function poolSize({ pool = [] }: SandboxClass, namespace: string): number {
  return pool.find((entry) => entry.namespace === namespace)?.size ?? 0;
}

/** Has a warm pool of the namespace pods of this template? An agent with its own resources or files has another template. */
export function isPooled(
  { sandboxClasses }: Pick<OperatorConfig, 'sandboxClasses'>,
  templates: PodTemplates,
  namespace: string,
  { className, digest }: PodTemplate,
): boolean {
  const own = sandboxClasses.find(({ name }) => name === className);
  return own !== undefined && poolSize(own, namespace) > 0 && templates.get(own).digest === digest;
}
