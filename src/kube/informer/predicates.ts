import type { Change, KubeObject } from './store.ts';

/** Whether a change triggers a reconcile. Additions and deletions always pass; predicates filter updates. */
export type Predicate<T extends KubeObject = KubeObject> = (change: Change<T>) => boolean;

function onUpdate(changed: (before: KubeObject, after: KubeObject) => boolean): Predicate {
  return (change) => change.type !== 'updated' || changed(change.before, change.object);
}

/** The generation (that is, the spec) changed. A status write does not change the generation, so it does not trigger its own writer. */
export const generationChanged: Predicate = onUpdate(
  (before, after) => before.metadata.generation !== after.metadata.generation,
);

/** The annotation was added, changed or removed. */
export function annotationChanged(name: string): Predicate {
  return onUpdate((before, after) => before.metadata.annotations?.[name] !== after.metadata.annotations?.[name]);
}

/** The label was added, changed or removed. */
export function labelChanged(name: string): Predicate {
  return onUpdate((before, after) => before.metadata.labels?.[name] !== after.metadata.labels?.[name]);
}

export function and<T extends KubeObject>(...all: readonly Predicate<T>[]): Predicate<T> {
  return (change) => all.every((predicate) => predicate(change));
}

export function or<T extends KubeObject>(...any: readonly Predicate<T>[]): Predicate<T> {
  return (change) => any.some((predicate) => predicate(change));
}

/** Inverts the predicate for updates. Additions and deletions still pass. */
export function not<T extends KubeObject>(predicate: Predicate<T>): Predicate<T> {
  return (change) => change.type !== 'updated' || !predicate(change);
}
