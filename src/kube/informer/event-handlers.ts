import type { Predicate } from './predicates.ts';
import { PRIORITY } from '../controller/priority-fifo.ts';
import type { Reflector } from './reflector.ts';
import { type KubeObject, keyOf } from './store.ts';
import type { WorkQueue } from '../controller/work-queue.ts';

export interface EnqueueOptions<T extends KubeObject> {
  /** The keys to enqueue when the object changes; default: its own key. */
  keys?: (object: T) => readonly string[];
  /** Filters changes. Not applied to the initial list and resyncs. */
  predicate?: Predicate<T>;
}

/** Enqueues keys for every change of the kind. Keys from the initial list or a resync have low priority. */
export function enqueueOnChange<T extends KubeObject>(
  reflector: Pick<Reflector<T>, 'subscribe'>,
  queue: WorkQueue,
  { keys = ownKey, predicate }: EnqueueOptions<T> = {},
): void {
  reflector.subscribe((change, origin) => {
    if (origin === 'change' && predicate?.(change) === false) return;
    const priority = origin === 'change' ? PRIORITY.normal : PRIORITY.resync;
    // When an object changes its owner, both owners are enqueued.
    const before = change.type === 'updated' ? keys(change.before) : [];
    for (const key of new Set([...before, ...keys(change.object)])) queue.add(key, priority);
  });
}

function ownKey(object: KubeObject): readonly string[] {
  return [keyOf(object)];
}

/** `keys` for child objects: the key of the controlling owner of that kind, in the child's namespace. Ignores the version of the API group. */
export function ownerKeys({ group, kind }: { group: string; kind: string }): (object: KubeObject) => readonly string[] {
  return ({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined || owner.kind !== kind || groupOf(owner.apiVersion) !== group) return [];
    const { namespace } = metadata;
    return [namespace === undefined || namespace === '' ? owner.name : `${namespace}/${owner.name}`];
  };
}

/** `valuesOf` for an index of child objects: the uid of the controlling owner. */
export function ownerUids({ metadata }: KubeObject): readonly string[] {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner === undefined ? [] : [owner.uid];
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}
