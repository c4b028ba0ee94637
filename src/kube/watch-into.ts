import type { Predicate } from './predicates.ts';
import { PRIORITY } from './ready-keys.ts';
import type { Reflector } from './reflector.ts';
import { type KubeObject, keyOf } from './store.ts';
import type { WorkQueue } from './work-queue.ts';

export interface WatchIntoOptions<T extends KubeObject> {
  /** Keys to work on when the object changes; its own when not given. */
  keys?: (object: T) => readonly string[];
  /** Changes that matter. Not asked about first lists and resyncs. */
  predicate?: Predicate<T>;
}

/** Every change of the kind becomes work. What a first list or a resync brings waits behind what changes. */
export function watchInto<T extends KubeObject>(
  reflector: Pick<Reflector<T>, 'subscribe'>,
  queue: WorkQueue,
  { keys = ownKey, predicate }: WatchIntoOptions<T> = {},
): void {
  reflector.subscribe((change, origin) => {
    if (origin === 'change' && predicate?.(change) === false) return;
    const priority = origin === 'change' ? PRIORITY.change : PRIORITY.resync;
    // An object that changes hands is news for both.
    const before = change.type === 'updated' ? keys(change.before) : [];
    for (const key of new Set([...before, ...keys(change.object)])) queue.add(key, priority);
  });
}

function ownKey(object: KubeObject): readonly string[] {
  return [keyOf(object)];
}

/** `keys` for children: the key of the controlling owner of that kind, in the child's own namespace. Versions of the group do not matter. */
export function ownerKeys({ group, kind }: { group: string; kind: string }): (object: KubeObject) => readonly string[] {
  return ({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined || owner.kind !== kind || groupOf(owner.apiVersion) !== group) return [];
    const { namespace } = metadata;
    return [namespace === undefined || namespace === '' ? owner.name : `${namespace}/${owner.name}`];
  };
}

/** `values` for an index of children: the uid of the controlling owner. */
export function ownerUids({ metadata }: KubeObject): readonly string[] {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner === undefined ? [] : [owner.uid];
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}
