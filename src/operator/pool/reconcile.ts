import type { KubeClient } from '../../kube/client/kube-client.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { printable } from '../../lib/printable.ts';
import type { Logger } from '../../telemetry/log.ts';
import { podAnnotations, removePod } from '../agent/apply.ts';
import { warmPodName } from '../pods/pod-name.ts';
import { type PodTemplates, podLabels } from '../pods/pod-template.ts';
import { parseKey } from '../kube/cache.ts';
import type { OperatorConfig, SandboxClass } from '../config.ts';
import type { AdmissionPolicyMonitor } from '../admission-policies/monitor.ts';
import { FIELD_MANAGER, type Pod, TYPES } from '../kube/types.ts';
import type { NamespaceObjects } from '../namespace/prepare.ts';
import { planPool } from './plan.ts';
import type { WarmPool } from './warm-pool.ts';

export interface PoolDeps {
  readonly client: KubeClient;
  readonly config: OperatorConfig;
  readonly templates: PodTemplates;
  readonly pool: WarmPool;
  readonly namespaces: NamespaceObjects;
  readonly ids: IdGenerator;
  readonly policyMonitor: AdmissionPolicyMonitor;
}

const RETRY_MS = 30_000;

/** Reconciles the warm pods of a key `namespace/class`. */
export async function reconcilePool(
  deps: PoolDeps,
  key: string,
  { log, signal }: { log: Logger; signal: AbortSignal },
): Promise<ReconcileResult> {
  const { namespace, name } = parseKey(key);
  const sandboxClass = deps.config.sandboxClasses.find((candidate) => candidate.name === name);
  if (sandboxClass === undefined) return { kind: 'done' };
  const template = deps.templates.get(sandboxClass);
  const { remove, create: make } = planPool(
    deps.pool.available(namespace, name),
    template,
    poolSize(sandboxClass, namespace),
  );
  for (const pod of remove) await removePod(deps.client, pod, signal);
  if (make === 0) return { kind: 'done' };
  if ((await deps.policyMonitor.state(namespace, signal)).kind === 'notEnforced')
    return { kind: 'requeueAfter', afterMs: RETRY_MS };
  if (!(await deps.namespaces.prepare(namespace, signal))) return { kind: 'requeueAfter', afterMs: 1_000 };
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
      log.warn({ error: printable(error.message, 500) }, 'the API server rejected a warm pod');
      return { kind: 'requeueAfter', afterMs: RETRY_MS };
    }
  }
  return { kind: 'done' };
}

export function poolSize({ pool = [] }: SandboxClass, namespace: string): number {
  return pool.find((entry) => entry.namespace === namespace)?.size ?? 0;
}
