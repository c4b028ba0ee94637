import { sha256 } from '../lib/canonical.ts';
import type { Json, JsonObject } from '../lib/json.ts';

/**
 * Author's words, made unreadable as instructions and still comparable: the same name is the same stand-in everywhere in one
 * artifact. Single short words pass, since a judge needs to tell `price` from `total`; sentences never do.
 */
export interface Veil {
  /** A property, parameter or step name. */
  name(text: string): string;
  /** A variable or function of the author's. Always replaced. */
  variable(text: string): string;
  /** A string value: itself when plain, else `b64:` with the first bytes, its length and its digest. */
  text(text: string): string;
  /** Any JSON value, its keys and strings veiled; long lists and deep values are cut with a note. */
  value(value: Json): Json;
  /** How much was replaced. */
  counts(): { names: number; texts: number };
}

const MAXIMUM_ITEMS = 20;
const MAXIMUM_DEPTH = 12;
const SHOWN_BYTES = 72;

/** Words that mean something to a judge. A name or text that holds one is never shown as it is. */
const LOADED = [
  'accept',
  'approv',
  'assistant',
  'bypass',
  'confiden',
  'disregard',
  'forget',
  'ignor',
  'instruct',
  'judge',
  'obey',
  'override',
  'prompt',
  'refus',
  'reject',
  'review',
  'safe',
  'system',
  'trust',
  'verdict',
];

export function createVeil(known: (name: string) => boolean = () => false): Veil {
  const names = new Map<string, string>();
  const variables = new Map<string, string>();
  let texts = 0;
  const standIn = (table: Map<string, string>, prefix: string, text: string): string => {
    const found = table.get(text) ?? `${prefix}${table.size + 1}`;
    table.set(text, found);
    return found;
  };
  const veil: Veil = {
    name: (text) => (known(text) || isPlainName(text) ? text : standIn(names, 'p', text)),
    variable: (text) => standIn(variables, 'v', text),
    text(text) {
      const renamed = names.get(text);
      if (renamed !== undefined) return renamed;
      if (isPlainText(text, 16)) return text;
      texts += 1;
      return encoded(text, SHOWN_BYTES);
    },
    value: (value) => veiledValue(veil, value, 0),
    counts: () => ({ names: names.size, texts }),
  };
  return veil;
}

/** Base 64 of the beginning, with length and digest of the whole. */
export function encoded(text: string, bytes: number): string {
  const shown = Buffer.from(text, 'utf8').subarray(0, bytes).toString('base64url');
  return `b64:${shown} (${text.length} characters, ${sha256(text).slice('sha256:'.length, 'sha256:'.length + 12)})`;
}

function veiledValue(veil: Veil, value: Json, depth: number): Json {
  if (typeof value === 'string') return veil.text(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAXIMUM_DEPTH) return 'deeper values not shown';
  if (Array.isArray(value)) {
    const shown = value.slice(0, MAXIMUM_ITEMS).map((item) => veiledValue(veil, item, depth + 1));
    return value.length > MAXIMUM_ITEMS ? [...shown, `${value.length - MAXIMUM_ITEMS} more not shown`] : shown;
  }
  const entries = Object.entries(value);
  const shown: JsonObject = {};
  for (const [key, item] of entries.slice(0, MAXIMUM_ITEMS)) shown[veil.name(key)] = veiledValue(veil, item, depth + 1);
  if (entries.length > MAXIMUM_ITEMS) shown['more members not shown'] = entries.length - MAXIMUM_ITEMS;
  return shown;
}

/** At most two short words of plain letters. */
function isPlainName(text: string): boolean {
  return text.length <= 24 && /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(text) && wordsOf(text).length <= 2 && !isLoaded(text);
}

/** Printable ASCII with at most one word. */
export function isPlainText(text: string, limit: number): boolean {
  if (text.length > limit || !/^[\x20-\x7e\n\t\r]*$/.test(text) || isLoaded(text)) return false;
  return wordsOf(text).filter((word) => word.length >= 3).length <= 1;
}

function wordsOf(text: string): string[] {
  return text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
}

function isLoaded(text: string): boolean {
  const letters = text.toLowerCase().replaceAll(/[^a-z]/g, '');
  return LOADED.some((word) => letters.includes(word));
}
