/** JSON values, and the two doors through which text from outside becomes one. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Keys that change what an object is when they are assigned. They never survive parsing. */
const POISONED_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses JSON text from an untrusted writer: `__proto__`, `constructor` and `prototype` members are dropped.
 * Throws SyntaxError as JSON.parse does.
 */
export function parseUntrustedJson(text: string): Json {
  const value = JSON.parse(text) as Json;
  return mayHoldPoisonedKey(text) ? withoutPoisonedKeys(value) : value;
}

/** A cheap look at the text, so that ordinary documents are walked by nobody. An escape may hide a key. */
function mayHoldPoisonedKey(text: string): boolean {
  return (
    text.includes('__proto__') || text.includes('constructor') || text.includes('prototype') || text.includes('\\u')
  );
}

function withoutPoisonedKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutPoisonedKeys);
  if (!isJsonObject(value)) return value;
  const clean: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (!POISONED_KEYS.has(key)) clean[key] = withoutPoisonedKeys(member);
  }
  return clean;
}

/** Own property only: `toString` is not a member of a JSON object. */
export function member(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Depth of the value: a scalar is 0, an empty array or object 1. Stops counting at `limit`. */
export function jsonDepth(value: Json, limit = 1_000): number {
  let depth = 0;
  let level: Json[] = [value];
  while (level.length > 0) {
    const next: Json[] = [];
    let containers = false;
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      containers = true;
      for (const child of Array.isArray(item) ? item : Object.values(item)) next.push(child);
    }
    if (!containers) return depth;
    depth += 1;
    if (depth >= limit) return depth;
    level = next;
  }
  return depth;
}

/** The text found by following member names, or `fallback` when there is none. */
export function textAt(value: Json | undefined, path: readonly string[], fallback = ''): string {
  const found = path.reduce<Json | undefined>((current, key) => member(current, key), value);
  return typeof found === 'string' ? found : fallback;
}
