/** The fields of an API object that the runtime reads; it keeps all other fields unchanged. */
export interface KubeObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields?: readonly unknown[];
    readonly ownerReferences?: readonly OwnerReference[];
    /** The time at which deletion was requested, RFC 3339. */
    readonly deletionTimestamp?: string;
  };
}

interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** A change of one object. A tombstone is a deletion that the watch missed: its object is the last known state, which may be stale. */
export type Change<T> =
  | { readonly type: 'added'; readonly key: string; readonly object: T }
  | { readonly type: 'updated'; readonly key: string; readonly object: T; readonly before: T }
  | { readonly type: 'deleted'; readonly key: string; readonly object: T; readonly tombstone: boolean };

export interface StoreOptions {
  /** Deep-freezes every stored object, so that a reconciler that modifies shared state fails its tests. */
  freeze?: boolean;
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** `namespace/name`, or only the name for cluster-scoped objects. */
export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

interface Index<T> {
  readonly valuesOf: (object: T) => readonly string[];
  readonly keys: Map<string, Set<string>>;
}

/** A cache of the objects of one kind. The objects are shared: clone an object before modifying it. */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Index<T>>();
  readonly #freeze: boolean;

  constructor(options: StoreOptions = {}) {
    this.#freeze = options.freeze ?? false;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  /** Adds an index by the values that the function returns for each object. Throws RangeError when the index exists. */
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    if (this.#indexes.has(name)) throw new RangeError(`an index named ${name} exists already`);
    const index: Index<T> = { valuesOf, keys: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) enter(index, key, object);
  }

  /** The objects with this value in the index. Throws RangeError when the index does not exist. */
  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new RangeError(`there is no index named ${name}`);
    return [...(index.keys.get(value) ?? [])].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /**
   * Stores an object that was added or updated, and returns the changes. The same resourceVersion is not a change. Another uid means another
   * object: the deletion of the previous one was missed, so the changes start with its tombstone.
   */
  set(incoming: T): Change<T>[] {
    const key = keyOf(incoming);
    const before = this.#objects.get(key);
    if (before !== undefined && sameVersion(before, incoming)) return [];
    const deleted =
      before !== undefined && before.metadata.uid !== incoming.metadata.uid ? this.#remove(key, true) : [];
    const object = this.#put(key, incoming);
    if (before === undefined || deleted.length > 0) return [...deleted, { type: 'added', key, object }];
    return [{ type: 'updated', key, object, before }];
  }

  /** Removes an object after a DELETED event. `last` is the final state of the object from the event, for the returned change. */
  delete(key: string, last?: T): Change<T>[] {
    return this.#remove(key, false).map((change) => (last === undefined ? change : { ...change, object: last }));
  }

  /** Replaces the content with a complete list. Objects that the list lacks were deleted unobserved and become tombstones. */
  replace(objects: readonly T[]): Change<T>[] {
    const listed = new Set(objects.map(keyOf));
    const deleted = [...this.#objects.keys()].filter((key) => !listed.has(key));
    return [...deleted.flatMap((key) => this.#remove(key, true)), ...objects.flatMap((object) => this.set(object))];
  }

  #put(key: string, incoming: T): T {
    const object = stripManagedFields(incoming);
    if (this.#freeze) deepFreeze(object);
    const before = this.#objects.get(key);
    for (const index of this.#indexes.values()) {
      if (before !== undefined) leave(index, key, before);
      enter(index, key, object);
    }
    this.#objects.set(key, object);
    return object;
  }

  #remove(key: string, tombstone: boolean): Change<T>[] {
    const object = this.#objects.get(key);
    if (object === undefined) return [];
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) leave(index, key, object);
    return [{ type: 'deleted', key, object, tombstone }];
  }
}

/** resourceVersions are opaque: they can be compared for equality only, not ordered. */
function sameVersion(a: KubeObject, b: KubeObject): boolean {
  const version = a.metadata.resourceVersion;
  return version !== undefined && version === b.metadata.resourceVersion && a.metadata.uid === b.metadata.uid;
}

/**
 * A copy without `managedFields` and the last applied configuration: they double the size of an object, and no reconciler reads them. Does not
 * modify the incoming object.
 */
function stripManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _dropped, ...metadata } = object.metadata;
  if (metadata.annotations === undefined || !Object.hasOwn(metadata.annotations, LAST_APPLIED)) {
    return { ...object, metadata };
  }
  const { [LAST_APPLIED]: _applied, ...annotations } = metadata.annotations;
  return { ...object, metadata: { ...metadata, annotations } };
}

function enter<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const keys = index.keys.get(value);
    if (keys === undefined) index.keys.set(value, new Set([key]));
    else keys.add(key);
  }
}

function leave<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const keys = index.keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) index.keys.delete(value);
  }
}

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
}
