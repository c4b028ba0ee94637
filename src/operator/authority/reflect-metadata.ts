/**
 * The certificate library keeps its list of algorithms in a container that asks for three functions of a proposal the language never got.
 * These are they, for that use alone; where somebody else brought them they stay as they are.
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
