import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { plainWordsOf } from './plain-words.ts';

/**
 * Replaces the author's words, so that a model cannot read them as instructions but can still compare them: equal names and
 * equal texts have the same placeholder everywhere in one artifact. Only words of a fixed list stay, because a judge must
 * distinguish `price` from `total`. Nothing is cut: the table of texts has each replaced text whole.
 */
export interface Obfuscator {
  /** A property, parameter or step name. */
  name(text: string): string;
  /** A variable or function named by the author. Always replaced. */
  variable(text: string): string;
  /** A string value: unchanged when plain, otherwise the name of its entry in the table of texts. */
  text(text: string): string;
  /** The name of the entry of a text in the table, also for a plain text. */
  hidden(text: string): string;
  /** Any JSON value with obfuscated keys and strings, whole. */
  value(value: Json): Json;
  /** The strings of one list, in order. More than a few words side by side are replaced, since together they could say something. */
  texts(items: readonly string[]): string[];
  /** Everything that was replaced, whole, as text in hexadecimal, which no choice of a text can make readable. */
  tables(): { names: JsonObject; variables: JsonObject; texts: JsonObject };
}

/** Different words of the author that stay in one artifact; all further words are replaced. */
const MAX_PLAIN_WORDS = 60;
/** Texts that could be words and may stay side by side in one list. */
const MAX_SIDE_BY_SIDE = 4;
const MAX_NUMBER = 32;
/** More of them could be letters: `.- .--.` is Morse code, and `|_|` a drawing. */
const MAX_SYMBOLS = 8;

/** `known` names belong to the language or the host; `knownTexts` are its keywords as text. */
export function createObfuscator(
  known: (name: string) => boolean = () => false,
  knownTexts: ReadonlySet<string> = new Set(),
): Obfuscator {
  const names = new Placeholders('p');
  const variables = new Placeholders('v');
  const texts = new Placeholders('t');
  const shownWords = new Set<string>();
  const isPlainName = (name: string): boolean => {
    if (/^\d{1,9}$/.test(name)) return true;
    const words = plainWordsOf(name);
    if (words === undefined) return false;
    const added = words.filter((word) => !shownWords.has(word));
    if (shownWords.size + added.length > MAX_PLAIN_WORDS) return false;
    for (const word of added) shownWords.add(word);
    return true;
  };
  const text = (given: string): string => {
    if (isWordless(given) || known(given) || knownTexts.has(given)) return given;
    return names.find(given) ?? texts.find(given) ?? (isPlainName(given) ? given : texts.of(given));
  };
  const obfuscator: Obfuscator = {
    name: (name) => (known(name) ? name : (names.find(name) ?? (isPlainName(name) ? name : names.of(name)))),
    variable: (name) => variables.of(name),
    text,
    hidden: (given) => texts.of(given),
    value: (value) => obfuscateValue(obfuscator, value),
    texts(items) {
      const possibleWords = items.filter((item) => !isWordlessInList(item)).length;
      return items.map((item) =>
        possibleWords > MAX_SIDE_BY_SIDE && !isWordlessInList(item) ? texts.of(item) : obfuscator.text(item),
      );
    },
    tables: () => ({ names: names.table(), variables: variables.table(), texts: texts.table() }),
  };
  return obfuscator;
}

/** One placeholder per text: `t1`, `t2`, … */
class Placeholders {
  readonly #prefix: string;
  readonly #table = new Map<string, string>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  find(text: string): string | undefined {
    return this.#table.get(text);
  }

  of(text: string): string {
    const found = this.#table.get(text) ?? `${this.#prefix}${this.#table.size + 1}`;
    this.#table.set(text, found);
    return found;
  }

  table(): JsonObject {
    return Object.fromEntries([...this.#table].map(([text, placeholder]) => [placeholder, hexOf(text)]));
  }
}

/** Lone surrogates have no UTF-8 form; two texts with different ones must not look equal. */
function hexOf(text: string): string {
  return text.isWellFormed()
    ? Buffer.from(text, 'utf8').toString('hex')
    : `utf16le ${Buffer.from(text, 'utf16le').toString('hex')}`;
}

/** A number, a date, or a few symbols. */
function isWordless(text: string): boolean {
  return isNumeric(text) || (text.length <= MAX_SYMBOLS && /^[\t\n\r\x20-\x40[-`{-~]*$/.test(text));
}

/** In a list, each item of several symbols could be a letter. */
function isWordlessInList(text: string): boolean {
  return text.length <= 1 ? isWordless(text) : isNumeric(text);
}

/** Digits with the punctuation of numbers, dates and times between them. */
function isNumeric(text: string): boolean {
  return text.length <= MAX_NUMBER && /^[+-]?\d+(?:[ .,:/+-]{1,2}\d+)*%?$/.test(text);
}

function obfuscateValue(obfuscator: Obfuscator, value: Json): Json {
  if (typeof value === 'string') return obfuscator.text(value);
  if (Array.isArray(value)) return obfuscateList(obfuscator, value);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [obfuscator.name(key), obfuscateValue(obfuscator, item)]),
  );
}

function obfuscateList(obfuscator: Obfuscator, items: readonly Json[]): Json[] {
  const texts = obfuscator.texts(items.filter((item) => typeof item === 'string'));
  let next = 0;
  return items.map((item) => {
    if (typeof item !== 'string') return obfuscateValue(obfuscator, item);
    next += 1;
    return texts[next - 1] ?? '';
  });
}
