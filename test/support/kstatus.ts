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

const PROGRESS: ReadonlySet<string> = new Set(['Reconciling', 'Stalled']);

/**
 * What kstatus (sigs.k8s.io/cli-utils) computes for a custom resource, and so what Flux and `kpt` wait for. Its first versions did not read
 * the condition Ready: `readsReady` is false for them.
 */
export function kstatusOf({ metadata, status }: KstatusObject, readsReady = true): Kstatus {
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  const { observedGeneration, conditions = [] } = status ?? {};
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) return 'InProgress';
  const progress = conditions.find(({ type, status: value }) => value === 'True' && PROGRESS.has(type));
  if (progress !== undefined) return progress.type === 'Stalled' ? 'Failed' : 'InProgress';
  const ready = conditions.find(({ type }) => type === 'Ready');
  return readsReady && ready !== undefined && ready.status !== 'True' ? 'InProgress' : 'Current';
}
