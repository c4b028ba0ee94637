import { sha256 } from '../../lib/canonical.ts';
import type { Json, JsonObject } from '../../lib/json.ts';

/**
 * Replaces the author's words, so that a model cannot read them as instructions but can still compare them: equal names have the
 * same placeholder everywhere in one artifact. Single short words stay, because a judge must distinguish `price` from `total`;
 * sentences never stay.
 */
export interface Obfuscator {
  /** A property, parameter or step name. */
  name(text: string): string;
  /** A variable or function named by the author. Always replaced. */
  variable(text: string): string;
  /** A string value: unchanged when plain, otherwise `b64:` with its first bytes, length and digest. */
  text(text: string): string;
  /** Any JSON value with obfuscated keys and strings; long lists and deep values are truncated with a note. */
  value(value: Json): Json;
  /** Number of replaced names and texts. */
  counts(): { names: number; texts: number };
}

const MAX_ITEMS = 20;
const MAX_DEPTH = 12;
const MAX_SHOWN_BYTES = 72;

/** Words that can influence a judge. A name or text that contains one is never shown unchanged. */
const PROMPT_WORDS = [
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

export function createObfuscator(known: (name: string) => boolean = () => false): Obfuscator {
  const names = new Map<string, string>();
  const variables = new Map<string, string>();
  let texts = 0;
  const placeholder = (table: Map<string, string>, prefix: string, text: string): string => {
    const found = table.get(text) ?? `${prefix}${table.size + 1}`;
    table.set(text, found);
    return found;
  };
  const obfuscator: Obfuscator = {
    name: (text) => (known(text) || isPlainName(text) ? text : placeholder(names, 'p', text)),
    variable: (text) => placeholder(variables, 'v', text),
    text(text) {
      const renamed = names.get(text);
      if (renamed !== undefined) return renamed;
      if (isPlainText(text, 16)) return text;
      texts += 1;
      return encodeTruncated(text, MAX_SHOWN_BYTES);
    },
    value: (value) => obfuscateValue(obfuscator, value, 0),
    counts: () => ({ names: names.size, texts }),
  };
  return obfuscator;
}

/** Base64 of the first bytes, with length and digest of the full text. */
export function encodeTruncated(text: string, bytes: number): string {
  const shown = Buffer.from(text, 'utf8').subarray(0, bytes).toString('base64url');
  return `b64:${shown} (${text.length} characters, ${sha256(text).slice('sha256:'.length, 'sha256:'.length + 12)})`;
}

function obfuscateValue(obfuscator: Obfuscator, value: Json, depth: number): Json {
  if (typeof value === 'string') return obfuscator.text(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return 'deeper values not shown';
  if (Array.isArray(value)) {
    const shown = value.slice(0, MAX_ITEMS).map((item) => obfuscateValue(obfuscator, item, depth + 1));
    return value.length > MAX_ITEMS ? [...shown, `${value.length - MAX_ITEMS} more not shown`] : shown;
  }
  const entries = Object.entries(value);
  const shown: JsonObject = {};
  for (const [key, item] of entries.slice(0, MAX_ITEMS))
    shown[obfuscator.name(key)] = obfuscateValue(obfuscator, item, depth + 1);
  if (entries.length > MAX_ITEMS) shown['more members not shown'] = entries.length - MAX_ITEMS;
  return shown;
}

/** At most two short words of plain letters. */
function isPlainName(text: string): boolean {
  return (
    text.length <= 24 && /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(text) && wordsOf(text).length <= 2 && !hasPromptWord(text)
  );
}

/** Printable ASCII with at most one word. */
export function isPlainText(text: string, limit: number): boolean {
  if (text.length > limit || !/^[\x20-\x7e\n\t\r]*$/.test(text) || hasPromptWord(text)) return false;
  return wordsOf(text).filter((word) => word.length >= 3).length <= 1;
}

function wordsOf(text: string): string[] {
  return text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
}

function hasPromptWord(text: string): boolean {
  const letters = text.toLowerCase().replaceAll(/[^a-z]/g, '');
  return PROMPT_WORDS.some((word) => letters.includes(word));
}
