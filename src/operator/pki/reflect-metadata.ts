/**
 * The certificate library uses a dependency injection container that needs three functions of the reflect-metadata proposal, which was
 * never standardized. This is a minimal polyfill for that library. Existing implementations are not replaced.
 */
type Key = string | symbol;

const metadata = new WeakMap<object, Map<Key, unknown>>();

const functions = {
  defineMetadata(key: Key, value: unknown, target: object): void {
    const known = metadata.get(target) ?? new Map<Key, unknown>();
    metadata.set(target, known.set(key, value));
  },
  getOwnMetadata: (key: Key, target: object): unknown => metadata.get(target)?.get(key),
  getMetadata(key: Key, target: object): unknown {
    for (let owner: object | null = target; owner !== null; owner = Object.getPrototypeOf(owner) as object | null) {
      const found = metadata.get(owner);
      if (found?.has(key) === true) return found.get(key);
    }
    return undefined;
  },
};

for (const [name, value] of Object.entries(functions)) {
  if (!(name in Reflect)) Object.defineProperty(Reflect, name, { value, configurable: true, writable: true });
}
