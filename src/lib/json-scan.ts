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
