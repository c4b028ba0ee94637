/** JSON values: parsing of untrusted text, and safe access to members. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Assigning one of these keys can change the prototype of an object. `parseUntrustedJson` drops them. */
const UNSAFE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** A whole number from 0 that a double represents exactly. */
export function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

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

/** The value of bytes from outside; undefined when they are not valid UTF-8 JSON. Otherwise like `parseUntrustedJson`. */
export function parseJsonBytes(data: Uint8Array): Json | undefined {
  try {
    return parseUntrustedJson(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Throws SyntaxError when the value, which was parsed from the text, holds a number that the text writes larger than the largest one. */
function assertFiniteNumbers(text: string, value: unknown): void {
  const path = infiniteNumberPath(text, value);
  if (path === undefined) return;
  throw new SyntaxError('a number of the JSON text is beyond the largest number; write a smaller number');
}

/**
 * The path, such as `/items/0`, of the first number of the value that its text writes larger than the largest one. Undefined when there is
 * none.
 */
export function infiniteNumberPath(text: string, value: unknown): string | undefined {
  return mayContainHugeNumber(text) ? findInfinite(value, '') : undefined;
}

/**
 * A cheap check of the text: only an exponent of three digits or very many digits lead beyond the largest number. The
 * expression looks at each character a bounded number of times.
 */
function mayContainHugeNumber(text: string): boolean {
  return /\de\+?\d{3}|(?<!\d)\d{200}/i.test(text);
}

function findInfinite(value: unknown, path: string): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return path;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const found = findInfinite(inner, `${path}/${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
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

/** Limits of a JSON text. They hold before it is parsed: one byte of text can cost more than a hundred bytes of memory as a value. */
export interface JsonLimits {
  /** Values: containers and members, at least as many as the parsed value has. */
  values: number;
  /** Nesting depth of containers. */
  depth: number;
}

/** The limit that a text exceeds. */
export type JsonExcess = keyof JsonLimits;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What each byte outside strings changes: commas and opening brackets begin a value, brackets change the depth. */
const VALUES = table({ ',': 1, '[': 1, '{': 1 });
const DEPTHS = table({ '[': 1, '{': 1, ']': -1, '}': -1 });
/** Characters that are encoded at a time. */
const SLICE_CHARACTERS = 65_536;

function table(changes: Readonly<Record<string, number>>): Int8Array {
  const bytes = new Int8Array(256);
  for (const [character, change] of Object.entries(changes)) bytes[character.charCodeAt(0)] = change;
  return bytes;
}

/**
 * Counts the values and the depth of a JSON text without parsing it. Looks at each byte once and allocates nothing. A text that is not
 * JSON may have any count; the parser refuses it.
 */
export class JsonScanner {
  readonly #limits: JsonLimits;
  #values = 1;
  #depth = 0;
  #deepest = 0;
  #inString = false;
  /** The next byte follows a backslash in a string. */
  #escaped = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** The next bytes of the text in UTF-8. Returns the limit that the text exceeds so far. */
  scan(bytes: Uint8Array): JsonExcess | undefined {
    let index = 0;
    while (index < bytes.length) index = this.#inString ? this.#skipString(bytes, index) : this.#count(bytes, index);
    if (this.#deepest > this.#limits.depth) return 'depth';
    return this.#values > this.#limits.values ? 'values' : undefined;
  }

  /** The index after the end of the string, or the end of the bytes. */
  #skipString(bytes: Uint8Array, from: number): number {
    let index = this.#escaped ? from + 1 : from;
    this.#escaped = false;
    while (index < bytes.length) {
      const byte = bytes[index];
      if (byte === QUOTE) {
        this.#inString = false;
        return index + 1;
      }
      index += byte === BACKSLASH ? 2 : 1;
    }
    this.#escaped = index > bytes.length;
    return bytes.length;
  }

  /** The index after the next quote, or the end of the bytes. */
  #count(bytes: Uint8Array, from: number): number {
    let [values, depth, deepest] = [this.#values, this.#depth, this.#deepest];
    let index = from;
    for (; index < bytes.length; index += 1) {
      const byte = bytes[index] ?? 0;
      if (byte === QUOTE) {
        this.#inString = true;
        index += 1;
        break;
      }
      values += VALUES[byte] ?? 0;
      depth += DEPTHS[byte] ?? 0;
      if (depth > deepest) deepest = depth;
    }
    [this.#values, this.#depth, this.#deepest] = [values, depth, deepest];
    return index;
  }
}

/** The limit that a whole text exceeds; undefined when it exceeds none. */
export function jsonExcess(text: string, limits: JsonLimits): JsonExcess | undefined {
  const scanner = new JsonScanner(limits);
  for (let from = 0; from < text.length; from += SLICE_CHARACTERS) {
    const excess = scanner.scan(Buffer.from(text.slice(from, from + SLICE_CHARACTERS)));
    if (excess !== undefined) return excess;
  }
  return undefined;
}
