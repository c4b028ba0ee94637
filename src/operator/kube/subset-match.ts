/**
 * Does `actual` contain all fields of `wanted` with the same values? Maps may have additional members, because the API server adds
 * defaults; maps whose key is in `exact`, and lists, may not.
 */
export function containsFields(actual: unknown, wanted: unknown, exact: readonly string[] = []): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(actual) || actual.length !== wanted.length) return false;
    return wanted.every((item, index) => containsFields(actual[index], item, exact));
  }
  if (typeof wanted !== 'object' || wanted === null) return actual === wanted;
  if (typeof actual !== 'object' || actual === null) return Object.keys(wanted).length === 0 && actual === undefined;
  return Object.entries(wanted).every(([key, value]) => {
    const found: unknown = Reflect.get(actual, key);
    return containsFields(found, value, exact) && (!exact.includes(key) || sameKeys(found, value));
  });
}

/** The JSON merge patch from `actual` to `wanted`. Removes additional members of maps whose key is in `exact`. */
export function mergePatch(actual: unknown, wanted: object, exact: readonly string[], isExact = false): object {
  const patch: Record<string, unknown> = {};
  if (isExact) for (const key of keysOf(actual)) patch[key] = null;
  for (const [key, value] of Object.entries(wanted)) {
    const found: unknown = typeof actual === 'object' && actual !== null ? Reflect.get(actual, key) : undefined;
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    patch[key] = isMap ? mergePatch(found, value as object, exact, exact.includes(key)) : value;
  }
  return patch;
}

function keysOf(value: unknown): string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : [];
}

function sameKeys(one: unknown, other: unknown): boolean {
  return keysOf(one).length === keysOf(other).length;
}
