import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { Report } from './finding.ts';

/** The members of one document, each of which is read once. What is not read is reported. */
export class Members {
  readonly #file: string;
  readonly #values: JsonObject;
  readonly #report: Report;
  readonly #read = new Set<string>();

  constructor(file: string, values: JsonObject, report: Report) {
    this.#file = file;
    this.#values = values;
    this.#report = report;
  }

  static of(file: string, value: Json, report: Report): Members | undefined {
    if (isJsonObject(value)) return new Members(file, value, report);
    report({
      level: 'error',
      file,
      rule: 'yaml-map',
      message: 'it is not a map of keys and values',
      fix: 'write key: value',
    });
    return undefined;
  }

  has(key: string): boolean {
    return this.#value(key) !== undefined;
  }

  text(key: string, maxLength: number): string | undefined {
    const value = this.#value(key);
    if (value === undefined) return undefined;
    const text = typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : '';
    if (text !== '' && text.length <= maxLength) return text;
    this.error(key, `has to be a text of 1 to ${maxLength} characters`);
    return undefined;
  }

  boolean(key: string): boolean | undefined {
    const value = this.#value(key);
    if (value === undefined || typeof value === 'boolean') return value;
    this.error(key, 'has to be true or false');
    return undefined;
  }

  /** A list; one text is a list of one. */
  list(key: string, maxItems: number): Json[] {
    const value = this.#value(key);
    if (value === undefined || value === null) return [];
    const items = Array.isArray(value) ? value : [value];
    if (items.length <= maxItems) return items;
    this.error(key, `has more than ${maxItems} items`);
    return [];
  }

  texts(key: string, maxItems: number, maxLength: number): string[] {
    const items = this.list(key, maxItems);
    const texts = items.flatMap((item) => (typeof item === 'string' && item.length <= maxLength ? [item.trim()] : []));
    if (texts.length < items.length) this.error(key, `has to be a list of texts of at most ${maxLength} characters`);
    return [...new Set(texts.filter((text) => text !== ''))];
  }

  value(key: string): Json | undefined {
    return this.#value(key);
  }

  error(key: string, what: string, fix = 'correct it'): void {
    this.#report({ level: 'error', file: this.#file, rule: 'key', message: `${printable(key, 64)} ${what}`, fix });
  }

  /** A key that is valid and has no effect. */
  warn(key: string, what: string, fix: string): void {
    this.#report({ level: 'warning', file: this.#file, rule: 'key', message: `${printable(key, 64)} ${what}`, fix });
  }

  /** Names each key that nothing has read. */
  reportRest(): void {
    for (const key of Object.keys(this.#values)) {
      if (!this.#read.has(key)) this.warn(key, 'is not a key that Temper knows, and has no effect', 'remove it');
    }
  }

  #value(key: string): Json | undefined {
    this.#read.add(key);
    return Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
  }
}
