import type { KubeObject } from '../kube/store.ts';

/**
 * What was written and not heard of yet. A write names the version it replaced, so the cache is behind as long as it holds that very
 * version, and right about any other.
 */
export class OwnWrites<T extends KubeObject> {
  readonly #written = new Map<string, { readonly replaced: string; readonly object: T }>();

  /** The newer of what the cache holds and what was written over exactly that. */
  latest(key: string, cached: T): T {
    const own = this.#written.get(key);
    if (own === undefined) return cached;
    if (own.replaced === cached.metadata.resourceVersion) return own.object;
    this.#written.delete(key);
    return cached;
  }

  /** The cache still holds `replaced` or something before it. */
  wrote(key: string, cachedVersion: string, object: T): void {
    this.#written.set(key, { replaced: cachedVersion, object });
  }

  forget(key: string): void {
    this.#written.delete(key);
  }
}
