import { PRIORITY, type Priority } from '../../kube/controller/priority-fifo.ts';
import type { ChangeSource } from '../../kube/informer/reflector.ts';
import type { WorkQueue } from '../../kube/controller/work-queue.ts';
import type { Change } from '../../kube/informer/store.ts';
import type { Cache } from '../kube/cache.ts';
import type { Informers } from '../kube/informers.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { BY_NAMESPACE, type CapabilityReconciler } from './reconcile.ts';
import type { StoredCapability } from './stored-capability.ts';

export interface CapabilityRouteDeps {
  readonly informers: Pick<Informers, 'capabilities' | 'tools'>;
  readonly capabilities: Cache<StoredCapability>;
  /** Keys are namespaces. */
  readonly queue: WorkQueue;
  readonly reconciler: Pick<CapabilityReconciler, 'isExternalStatus' | 'forget'>;
}

/** Assesses the Capabilities of a namespace after a change of one of them, or of a Shared tool that `requiredTools` may name. */
export function routeCapabilities({ informers, capabilities, queue, reconciler }: CapabilityRouteDeps): void {
  informers.capabilities.subscribe((change, source) => {
    const { object } = change;
    if (change.type === 'deleted') reconciler.forget(object);
    if (isOnlyStatus(change) && !reconciler.isExternalStatus(object)) return;
    queue.add(object.metadata.namespace, priorityOf(source));
  });
  informers.tools.subscribe((change, source) => {
    const { namespace } = change.object.metadata;
    if (!isServiceChange(change) || capabilities.byIndex(BY_NAMESPACE, namespace).length === 0) return;
    queue.add(namespace, priorityOf(source));
  });
}

function priorityOf(source: ChangeSource): Priority {
  return source === 'change' ? PRIORITY.normal : PRIORITY.resync;
}

function isOnlyStatus(change: Change<StoredCapability>): boolean {
  return change.type === 'updated' && change.before.metadata.generation === change.object.metadata.generation;
}

function isServiceChange(change: Change<StoredTool>): boolean {
  if (change.object.facts.tier !== 'Shared') return false;
  return change.type !== 'updated' || change.before.status?.active !== change.object.status?.active;
}
