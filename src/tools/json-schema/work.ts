import type { Json } from '../../lib/json.ts';

/** Limit of the work of one validation. A unit takes about ten nanoseconds, so a check ends within a second or two. */
const MAX_UNITS = 100_000_000;

/** Units of one value that is written as text, besides its characters. */
const UNITS_PER_VALUE = 20;

/** Stops a validation that takes too much work; the value is then refused. */
export class WorkLimitError extends Error {}

/** Counts the work of one validation while it is done. */
export class WorkMeter {
  #units = 0;
  #limit = MAX_UNITS;
  #members = new Map<object, number>();
  #sizes = new Map<object, number>();
  #lastText = '';
  #lastLength = 0;

  /** Begins the count of another validation. */
  start(limit = MAX_UNITS): void {
    this.#units = 0;
    this.#limit = limit;
    this.#members = new Map();
    this.#sizes = new Map();
    this.#lastText = '';
    this.#lastLength = 0;
  }

  spend(units: number): void {
    this.#units += units;
    if (this.#units > this.#limit) throw new WorkLimitError();
  }

  /** The members of an object, which are counted once per validation. */
  membersOf(value: object): number {
    const known = this.#members.get(value) ?? Object.keys(value).length;
    this.#members.set(value, known);
    return known;
  }

  /** The characters of a text, counted once while the same text is checked by several keywords. */
  lengthOf(text: string): number {
    if (text !== this.#lastText) {
      this.spend(text.length);
      this.#lastLength = codePoints(text);
      this.#lastText = text;
    }
    return this.#lastLength;
  }

  /** The work of writing a value as text. */
  sizeOf(value: Json): number {
    if (typeof value === 'string') return UNITS_PER_VALUE + value.length;
    if (typeof value !== 'object' || value === null) return UNITS_PER_VALUE;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = UNITS_PER_VALUE;
    for (const [key, item] of Object.entries(value)) size += key.length + this.sizeOf(item);
    this.#sizes.set(value, size);
    return size;
  }
}

function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index += 1) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      count -= 1;
      index += 1;
    }
  }
  return count;
}
