/** URLSearchParams. The text of these functions and classes runs in the guest; see web-globals.ts. */
import { percentByte, percentDecode } from './url-encoding.ts';
import { encodeUtf8 } from './utf8.ts';

export type SearchPair = [name: string, value: string];

function parseForm(text: string): SearchPair[] {
  return text
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      const name = equals === -1 ? part : part.slice(0, equals);
      return [percentDecode(name, true), percentDecode(equals === -1 ? '' : part.slice(equals + 1), true)];
    });
}

function encodeFormText(text: string): string {
  let result = '';
  for (const byte of encodeUtf8(text)) {
    const character = String.fromCharCode(byte);
    if (/[\dA-Za-z*._-]/.test(character)) result += character;
    else result += byte === 0x20 ? '+' : percentByte(byte);
  }
  return result;
}

function asUsvText(value: unknown): string {
  return String(value).toWellFormed();
}

function readPairs(init: unknown): SearchPair[] {
  if (init === undefined) return [];
  if ((typeof init !== 'object' && typeof init !== 'function') || init === null) {
    return parseForm(asUsvText(init).replace(/^\?/, ''));
  }
  if (Symbol.iterator in init) {
    return Array.from(init as Iterable<Iterable<unknown>>, (pair) => {
      const [name, value, ...more] = typeof pair === 'object' ? [...pair] : [];
      if (value === undefined || more.length > 0) throw new TypeError('Each pair must be a list of a name and a value');
      return [asUsvText(name), asUsvText(value)];
    });
  }
  const record = new Map(Object.entries(init).map(([name, value]) => [asUsvText(name), asUsvText(value)]));
  return [...record];
}

export class GuestSearchParams {
  #pairs: SearchPair[];
  /** Called with the new text after each change. */
  #onChange: ((text: string) => void) | undefined;

  constructor(init?: unknown) {
    this.#pairs = readPairs(init);
  }

  /** The parameters of a URL: `replace` sets them without a call of `onChange`. */
  static attach(onChange: (text: string) => void): { params: GuestSearchParams; replace: (query: string) => void } {
    const params = new GuestSearchParams();
    params.#onChange = onChange;
    const replace = (query: string): void => {
      params.#pairs = parseForm(query);
    };
    return { params, replace };
  }

  get size(): number {
    return this.#pairs.length;
  }

  append(name: unknown, value: unknown): void {
    this.#change([...this.#pairs, [asUsvText(name), asUsvText(value)]]);
  }

  delete(name: unknown, value?: unknown): void {
    this.#change(this.#pairs.filter((pair) => !isPairOf(pair, name, value)));
  }

  get(name: unknown): string | null {
    return this.#pairs.find((pair) => isPairOf(pair, name, undefined))?.[1] ?? null;
  }

  getAll(name: unknown): string[] {
    return this.#pairs.filter((pair) => isPairOf(pair, name, undefined)).map(([, value]) => value);
  }

  has(name: unknown, value?: unknown): boolean {
    return this.#pairs.some((pair) => isPairOf(pair, name, value));
  }

  set(name: unknown, value: unknown): void {
    const first = this.#pairs.findIndex((pair) => isPairOf(pair, name, undefined));
    const entry: SearchPair = [asUsvText(name), asUsvText(value)];
    if (first === -1) this.#change([...this.#pairs, entry]);
    else {
      const kept = this.#pairs.filter((pair, index) => index === first || !isPairOf(pair, name, undefined));
      this.#change(kept.with(first, entry));
    }
  }

  sort(): void {
    this.#change(this.#pairs.toSorted(([first], [second]) => (first < second ? -1 : first > second ? 1 : 0)));
  }

  forEach(callback: (value: string, name: string, self: unknown) => void, self?: unknown): void {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries(): Generator<SearchPair> {
    for (let index = 0; index < this.#pairs.length; index += 1) {
      const [name, value] = this.#pairs[index] as SearchPair;
      yield [name, value];
    }
  }

  *keys(): Generator<string> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Generator<string> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Generator<SearchPair> {
    return this.entries();
  }

  get [Symbol.toStringTag](): string {
    return 'URLSearchParams';
  }

  toString(): string {
    return this.#pairs.map(([name, value]) => `${encodeFormText(name)}=${encodeFormText(value)}`).join('&');
  }

  #change(pairs: SearchPair[]): void {
    this.#pairs = pairs;
    this.#onChange?.(this.toString());
  }
}

function isPairOf([name, value]: SearchPair, wantedName: unknown, wantedValue: unknown): boolean {
  return name === asUsvText(wantedName) && (wantedValue === undefined || value === asUsvText(wantedValue));
}

/** The functions of this module, for the guest. */
export const SEARCH_PARAMS_PARTS = [parseForm, encodeFormText, asUsvText, readPairs, GuestSearchParams, isPairOf];
