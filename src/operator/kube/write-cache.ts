import type { KubeObject } from '../../kube/informer/store.ts';

/**
 * Own writes that the informer cache does not contain yet. A write is stored with the resourceVersion that the cache had at that time:
 * the cache is out of date as long as it has exactly that version, and up to date with any other version.
 */
export class WriteCache<T extends KubeObject> {
  readonly #written = new Map<string, { readonly replaced: string; readonly object: T }>();

  /** The written object while the cache still has the version it replaced, otherwise the cached object. */
  latest(key: string, cached: T): T {
    const own = this.#written.get(key);
    if (own === undefined) return cached;
    if (own.replaced === cached.metadata.resourceVersion) return own.object;
    this.#written.delete(key);
    return cached;
  }

  /** Records a write. `cachedVersion` is the resourceVersion that the cache had when the object was read. */
  record(key: string, cachedVersion: string, object: T): void {
    this.#written.set(key, { replaced: cachedVersion, object });
  }

  forget(key: string): void {
    this.#written.delete(key);
  }
}
