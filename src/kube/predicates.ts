import type { Change, KubeObject } from './store.ts';

/** Is the change worth a reconcile? Objects that come or go always are; predicates judge what happens between. */
export type Predicate<T extends KubeObject = KubeObject> = (change: Change<T>) => boolean;

function onUpdate(changed: (before: KubeObject, after: KubeObject) => boolean): Predicate {
  return (change) => change.type !== 'updated' || changed(change.before, change.object);
}

/** The spec changed. A write of the status leaves the generation as it is, so it does not wake its own writer. */
export const generationChanged: Predicate = onUpdate(
  (before, after) => before.metadata.generation !== after.metadata.generation,
);

/** The annotation appeared, changed or went. */
export function annotationChanged(name: string): Predicate {
  return onUpdate((before, after) => before.metadata.annotations?.[name] !== after.metadata.annotations?.[name]);
}

/** The label appeared, changed or went. */
export function labelChanged(name: string): Predicate {
  return onUpdate((before, after) => before.metadata.labels?.[name] !== after.metadata.labels?.[name]);
}

export function and<T extends KubeObject>(...all: readonly Predicate<T>[]): Predicate<T> {
  return (change) => all.every((predicate) => predicate(change));
}

export function or<T extends KubeObject>(...any: readonly Predicate<T>[]): Predicate<T> {
  return (change) => any.some((predicate) => predicate(change));
}

/** Turns the answer for updates around. Objects that come or go pass all the same. */
export function not<T extends KubeObject>(predicate: Predicate<T>): Predicate<T> {
  return (change) => change.type !== 'updated' || !predicate(change);
}
