import type { KubeClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/client.ts';
import type { Outcome } from '../../kube/outcome.ts';
import type { Ids } from '../../lib/ids.ts';
import { printable } from '../../lib/escape.ts';
import type { Logger } from '../../telemetry/log.ts';
import { podAnnotations, removePod } from '../agent/apply.ts';
import { warmPodName } from '../agent/pod-name.ts';
import { type PodTemplates, podLabels } from '../agent/pod-template.ts';
import { partsOf } from '../cache.ts';
import type { OperatorConfig, SandboxClass } from '../config.ts';
import type { Guard } from '../guard/guard.ts';
import { FIELD_MANAGER, type Pod, TYPES } from '../kube-types.ts';
import type { Namespaces } from '../namespace/prepare.ts';
import { planPool } from './plan.ts';
import type { Pool } from './pool.ts';

export interface PoolDeps {
  readonly client: KubeClient;
  readonly config: OperatorConfig;
  readonly templates: PodTemplates;
  readonly pool: Pool;
  readonly namespaces: Namespaces;
  readonly ids: Ids;
  readonly policyMonitor: Guard;
}

const RETRY_MS = 30_000;

/** Reconciles the warm pods of a key `namespace/class`. */
export async function reconcilePool(
  deps: PoolDeps,
  key: string,
  { log, signal }: { log: Logger; signal: AbortSignal },
): Promise<Outcome> {
  const { namespace, name } = partsOf(key);
  const sandboxClass = deps.config.sandboxClasses.find((candidate) => candidate.name === name);
  if (sandboxClass === undefined) return { kind: 'done' };
  const template = deps.templates.of(sandboxClass);
  const { remove, make } = planPool(deps.pool.unclaimed(namespace, name), template, sizeOf(sandboxClass, namespace));
  for (const pod of remove) await removePod(deps.client, pod, signal);
  if (make === 0) return { kind: 'done' };
  if ((await deps.policyMonitor.state(namespace, signal)).kind === 'missing') return { kind: 'again', after: RETRY_MS };
  if (!(await deps.namespaces.prepare(namespace, signal))) return { kind: 'again', after: 1_000 };
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
      deps.pool.made(await deps.client.create<Pod>(TYPES.pods, object, signal, { manager: FIELD_MANAGER }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      log.warn({ error: printable(error.message, 500) }, 'the API server rejected a warm pod');
      return { kind: 'again', after: RETRY_MS };
    }
  }
  return { kind: 'done' };
}

export function sizeOf({ pool = [] }: SandboxClass, namespace: string): number {
  return pool.find((entry) => entry.namespace === namespace)?.size ?? 0;
}
