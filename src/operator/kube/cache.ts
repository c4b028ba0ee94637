import type { KubeObject, Store } from '../../kube/informer/store.ts';

/** The objects of one kind in all watched namespaces: one store for all namespaces, or one store per namespace. */
export class Cache<T extends KubeObject> {
  readonly #stores: readonly Store<T>[];

  constructor(stores: readonly Store<T>[]) {
    this.#stores = stores;
  }

  get(namespace: string, name: string): T | undefined {
    for (const store of this.#stores) {
      const found = store.get(namespace === '' ? name : `${namespace}/${name}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  list(): T[] {
    return this.#stores.flatMap((store) => store.list());
  }

  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    for (const store of this.#stores) store.addIndex(name, valuesOf);
  }

  byIndex(name: string, value: string): T[] {
    return this.#stores.flatMap((store) => store.byIndex(name, value));
  }
}

/** Splits a work queue key into namespace and name. */
export function parseKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, Math.max(slash, 0)), name: key.slice(slash + 1) };
}
