/** JSON values: parsing of untrusted text, and safe access to members. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Assigning one of these keys can change the prototype of an object. `parseUntrustedJson` drops them. */
const UNSAFE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses JSON text from an untrusted writer: `__proto__`, `constructor` and `prototype` members are dropped.
 * Throws SyntaxError as JSON.parse does, and for a number beyond the largest one, such as 1e999, which JSON.parse reads as
 * Infinity.
 */
export function parseUntrustedJson(text: string): Json {
  const value = JSON.parse(text) as Json;
  assertFiniteNumbers(text, value);
  return mayContainUnsafeKey(text) ? withoutUnsafeKeys(value) : value;
}

/** Throws SyntaxError when the value, which was parsed from the text, holds a number that the text writes larger than the largest one. */
export function assertFiniteNumbers(text: string, value: unknown): void {
  if (mayContainHugeNumber(text)) requireFiniteNumbers(value);
}

/**
 * A cheap check of the text: only an exponent of three digits or very many digits lead beyond the largest number. The
 * expression looks at each character a bounded number of times.
 */
function mayContainHugeNumber(text: string): boolean {
  return /\de\+?\d{3}|(?<!\d)\d{200}/i.test(text);
}

function requireFiniteNumbers(value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new SyntaxError('a number of the JSON text is beyond the largest number; write a smaller number');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const inner of Object.values(value)) requireFiniteNumbers(inner);
}

/** A cheap check of the text, so that ordinary documents are not traversed. A `\u` escape may hide a key. */
function mayContainUnsafeKey(text: string): boolean {
  return (
    text.includes('__proto__') || text.includes('constructor') || text.includes('prototype') || text.includes('\\u')
  );
}

function withoutUnsafeKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutUnsafeKeys);
  if (!isJsonObject(value)) return value;
  const clean: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (!UNSAFE_KEYS.has(key)) clean[key] = withoutUnsafeKeys(member);
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

/** The string at the path of member names, or `fallback` when there is no string. */
export function textAt(value: Json | undefined, path: readonly string[], fallback = ''): string {
  const found = path.reduce<Json | undefined>((current, key) => member(current, key), value);
  return typeof found === 'string' ? found : fallback;
}
