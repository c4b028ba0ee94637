import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { Veil } from './veil.ts';

/** What a keyword holds decides how it is shown. Keywords that are not here carry prose, and are counted and left out. */
const SCALARS = wordSet(
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems ' +
    'minProperties maxProperties nullable',
);
const SCHEMAS = wordSet('items additionalProperties not if then else contains propertyNames');
const SCHEMA_LISTS = wordSet('anyOf oneOf allOf prefixItems');
const SCHEMA_MAPS = wordSet('properties patternProperties $defs definitions');
const VALUES = wordSet('enum const');
const TEXTS = wordSet('pattern format');
const TYPES = wordSet('object array string number integer boolean null');
const MAXIMUM_DEPTH = 24;

export function normalizeSchema(schema: Json, veil: Veil): { schema: Json; dropped: number } {
  let dropped = 0;
  const show = (value: Json, depth: number): Json => {
    if (!isJsonObject(value)) return typeof value === 'boolean' ? value : null;
    if (depth > MAXIMUM_DEPTH) return 'deeper schemas not shown';
    const shown: JsonObject = {};
    for (const [keyword, held] of Object.entries(value)) {
      const part = keywordValue(keyword, held, veil, (inner) => show(inner, depth + 1));
      if (part === undefined) dropped += 1;
      else shown[keyword] = part;
    }
    return shown;
  };
  return { schema: show(schema, 0), dropped };
}

function keywordValue(keyword: string, held: Json, veil: Veil, show: (schema: Json) => Json): Json | undefined {
  if (keyword === 'type') return typesOf(held);
  if (keyword === 'required') return namesOf(held, veil);
  if (VALUES.has(keyword)) return veil.value(held);
  if (SCHEMAS.has(keyword)) return show(held);
  if (SCALARS.has(keyword)) return typeof held === 'number' || typeof held === 'boolean' ? held : undefined;
  if (typeof held === 'string') return textOf(keyword, held, veil);
  if (Array.isArray(held)) return SCHEMA_LISTS.has(keyword) ? held.map(show) : undefined;
  if (!SCHEMA_MAPS.has(keyword) || !isJsonObject(held)) return undefined;
  return Object.fromEntries(Object.entries(held).map(([name, inner]) => [veil.name(name), show(inner)]));
}

function textOf(keyword: string, held: string, veil: Veil): string | undefined {
  if (TEXTS.has(keyword)) return veil.text(held);
  if (keyword !== '$ref') return undefined;
  const parts = held.split('/').map((part) => (part === '#' ? part : veil.name(part)));
  return parts.join('/');
}

function namesOf(held: Json, veil: Veil): Json | undefined {
  return Array.isArray(held) ? held.map((name) => (typeof name === 'string' ? veil.name(name) : null)) : undefined;
}

function typesOf(held: Json): Json | undefined {
  if (Array.isArray(held)) return held.filter((item) => typeof item === 'string' && TYPES.has(item));
  return typeof held === 'string' && TYPES.has(held) ? held : undefined;
}

function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split(' '));
}
