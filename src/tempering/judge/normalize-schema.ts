import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { Obfuscator } from './obfuscation.ts';

/** The kind of a keyword's value decides how it is shown. All other keywords carry prose; they are dropped and counted. */
const SCALAR_KEYWORDS = wordSet(
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems ' +
    'minProperties maxProperties nullable',
);
const SCHEMA_KEYWORDS = wordSet('items additionalProperties not if then else contains propertyNames');
const SCHEMA_LIST_KEYWORDS = wordSet('anyOf oneOf allOf prefixItems');
const SCHEMA_MAP_KEYWORDS = wordSet('properties patternProperties $defs definitions');
const VALUE_KEYWORDS = wordSet('enum const');
const TEXT_KEYWORDS = wordSet('pattern format');
const KNOWN_TYPES = wordSet('object array string number integer boolean null');
const MAX_DEPTH = 24;

export function normalizeSchema(schema: Json, obfuscator: Obfuscator): { schema: Json; dropped: number } {
  let dropped = 0;
  const normalize = (value: Json, depth: number): Json => {
    if (!isJsonObject(value)) return typeof value === 'boolean' ? value : null;
    if (depth > MAX_DEPTH) return 'deeper schemas not shown';
    const normalized: JsonObject = {};
    for (const [keyword, held] of Object.entries(value)) {
      const part = keywordValue(keyword, held, obfuscator, (inner) => normalize(inner, depth + 1));
      if (part === undefined) dropped += 1;
      else normalized[keyword] = part;
    }
    return normalized;
  };
  return { schema: normalize(schema, 0), dropped };
}

function keywordValue(
  keyword: string,
  held: Json,
  obfuscator: Obfuscator,
  normalize: (schema: Json) => Json,
): Json | undefined {
  if (keyword === 'type') return typesOf(held);
  if (keyword === 'required') return namesOf(held, obfuscator);
  if (VALUE_KEYWORDS.has(keyword)) return obfuscator.value(held);
  if (SCHEMA_KEYWORDS.has(keyword)) return normalize(held);
  if (SCALAR_KEYWORDS.has(keyword)) return typeof held === 'number' || typeof held === 'boolean' ? held : undefined;
  if (typeof held === 'string') return textOf(keyword, held, obfuscator);
  if (Array.isArray(held)) return SCHEMA_LIST_KEYWORDS.has(keyword) ? held.map(normalize) : undefined;
  if (!SCHEMA_MAP_KEYWORDS.has(keyword) || !isJsonObject(held)) return undefined;
  return Object.fromEntries(Object.entries(held).map(([name, inner]) => [obfuscator.name(name), normalize(inner)]));
}

function textOf(keyword: string, held: string, obfuscator: Obfuscator): string | undefined {
  if (TEXT_KEYWORDS.has(keyword)) return obfuscator.text(held);
  if (keyword !== '$ref') return undefined;
  const parts = held.split('/').map((part) => (part === '#' ? part : obfuscator.name(part)));
  return parts.join('/');
}

function namesOf(held: Json, obfuscator: Obfuscator): Json | undefined {
  return Array.isArray(held)
    ? held.map((name) => (typeof name === 'string' ? obfuscator.name(name) : null))
    : undefined;
}

function typesOf(held: Json): Json | undefined {
  if (Array.isArray(held)) return held.filter((item) => typeof item === 'string' && KNOWN_TYPES.has(item));
  return typeof held === 'string' && KNOWN_TYPES.has(held) ? held : undefined;
}

function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split(' '));
}
