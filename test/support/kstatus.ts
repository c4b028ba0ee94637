type Kstatus = 'Terminating' | 'InProgress' | 'Failed' | 'Current';

interface KstatusObject {
  readonly metadata: { readonly generation?: number; readonly deletionTimestamp?: string };
  readonly status?:
    | {
        readonly observedGeneration?: number;
        readonly conditions?: readonly { readonly type: string; readonly status: string }[];
      }
    | undefined;
}

/**
 * What kstatus (sigs.k8s.io/cli-utils) computes for a custom resource, and so what Flux and `kpt` wait for. Its first versions did not read
 * the condition Ready: `readsReady` is false for them.
 */
export function kstatusOf({ metadata, status }: KstatusObject, readsReady = true): Kstatus {
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  const { observedGeneration, conditions = [] } = status ?? {};
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) return 'InProgress';
  for (const condition of conditions) {
    if (condition.type === 'Reconciling' && condition.status === 'True') return 'InProgress';
    if (condition.type === 'Stalled' && condition.status === 'True') return 'Failed';
  }
  const ready = conditions.find(({ type }) => type === 'Ready');
  return readsReady && ready !== undefined && ready.status !== 'True' ? 'InProgress' : 'Current';
}
