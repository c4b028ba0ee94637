/** What the runtime reads of an object of the API; everything else of it is kept and handed on. */
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
    /** When its deletion was asked for, RFC 3339. */
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

/** What became of one object. A tombstone is a deletion nobody saw: its object is the last one known, maybe an old one. */
export type Change<T> =
  | { readonly type: 'added'; readonly key: string; readonly object: T }
  | { readonly type: 'updated'; readonly key: string; readonly object: T; readonly before: T }
  | { readonly type: 'deleted'; readonly key: string; readonly object: T; readonly tombstone: boolean };

export interface StoreOptions {
  /** Makes every stored object unchangeable, so that a reconciler that edits shared state fails its test. */
  freeze?: boolean;
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** `namespace/name`, or the name alone for what has no namespace. */
export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

interface Index<T> {
  readonly valuesOf: (object: T) => readonly string[];
  readonly keys: Map<string, Set<string>>;
}

/** The objects of one kind as last heard of. They are shared: who wants to edit one clones it first. */
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

  /** Makes objects findable by the values the function reads from them. Throws RangeError when the name is taken. */
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    if (this.#indexes.has(name)) throw new RangeError(`an index named ${name} exists already`);
    const index: Index<T> = { valuesOf, keys: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) enter(index, key, object);
  }

  /** The objects with the value. Throws RangeError when no index has the name. */
  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new RangeError(`no index is named ${name}`);
    return [...(index.keys.get(value) ?? [])].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /**
   * Keeps an object that was heard of. An object whose version is the one kept is no change. One with another uid is
   * another object: that the one before it was deleted went unseen.
   */
  set(incoming: T): Change<T>[] {
    const key = keyOf(incoming);
    const before = this.#objects.get(key);
    if (before !== undefined && sameVersion(before, incoming)) return [];
    const gone = before !== undefined && before.metadata.uid !== incoming.metadata.uid ? this.#remove(key, true) : [];
    const object = this.#keep(key, incoming);
    if (before === undefined || gone.length > 0) return [...gone, { type: 'added', key, object }];
    return [{ type: 'updated', key, object, before }];
  }

  /** Drops an object whose deletion was heard of; the last state, when the news carries it, stands in the change. */
  delete(key: string, last?: T): Change<T>[] {
    return this.#remove(key, false).map((change) => (last === undefined ? change : { ...change, object: last }));
  }

  /** Takes a whole list for the truth. What it does not name was deleted while nobody listened. */
  replace(objects: readonly T[]): Change<T>[] {
    const named = new Set(objects.map(keyOf));
    const gone = [...this.#objects.keys()].filter((key) => !named.has(key));
    return [...gone.flatMap((key) => this.#remove(key, true)), ...objects.flatMap((object) => this.set(object))];
  }

  #keep(key: string, incoming: T): T {
    const object = withoutBallast(incoming);
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

/** Versions are opaque: they are the same or they are not, and none is later than another. */
function sameVersion(one: KubeObject, other: KubeObject): boolean {
  const version = one.metadata.resourceVersion;
  return version !== undefined && version === other.metadata.resourceVersion && one.metadata.uid === other.metadata.uid;
}

/** Without what doubles the size of an object and no reconciler reads. The incoming object stays as it is. */
function withoutBallast<T extends KubeObject>(object: T): T {
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
