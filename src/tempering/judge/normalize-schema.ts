import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { ASSERTIONS, DEFINITIONS, IN_PLACE, TO_ITEMS, TO_MEMBERS } from '../../tools/json-schema/keywords.ts';
import { readSchema } from '../../tools/json-schema/tree.ts';
import type { Obfuscator } from './obfuscation.ts';

/** Assertions whose value is shown as it is: numbers, booleans, types and formats of a fixed list. */
const FIXED_FORMS: ReadonlySet<string> = new Set(
  (
    'type format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems ' +
    'minProperties maxProperties minContains maxContains uniqueItems nullable'
  ).split(' '),
);

const SUBSCHEMAS: ReadonlyMap<string, string> = new Map([...IN_PLACE, ...TO_MEMBERS, ...TO_ITEMS, ...DEFINITIONS]);

/**
 * The schema as a judge reads it, made from what the validator compiles: a keyword that the validator obeys cannot be absent.
 * Throws RangeError for a schema that the validator refuses and for a keyword without a form here.
 */
export function normalizeSchema(schema: Json, obfuscator: Obfuscator): Json {
  const { clean, violations } = readSchema(schema, 'schema');
  if (violations.some(({ problem }) => problem !== 'unknown-keyword')) throw new RangeError('a schema is not valid');
  return normalize(clean, obfuscator);
}

function normalize(schema: Json, obfuscator: Obfuscator): Json {
  if (!isJsonObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [keyword, valueOf(keyword, value, obfuscator)]),
  );
}

function valueOf(keyword: string, value: Json, obfuscator: Obfuscator): Json {
  if (FIXED_FORMS.has(keyword)) return value;
  if (keyword === '$ref') return referenceOf(value, obfuscator);
  if (keyword === 'pattern') return obfuscator.text(textOf(value));
  if (keyword === 'enum' || keyword === 'const') return obfuscator.value(value);
  if (keyword === 'required') return namesOf(value, obfuscator);
  if (keyword === 'dependentRequired') return membersOf(value, obfuscator, (names) => namesOf(names, obfuscator));
  const form = SUBSCHEMAS.get(keyword);
  if (form === undefined) throw new RangeError('a schema has a keyword that reviewers do not know');
  const inner = (item: Json): Json => normalize(item, obfuscator);
  if (form === 'map') return membersOf(value, obfuscator, inner);
  if (form === 'schemas-or-names') {
    return membersOf(value, obfuscator, (item) => (Array.isArray(item) ? namesOf(item, obfuscator) : inner(item)));
  }
  return Array.isArray(value) ? value.map(inner) : inner(value);
}

function membersOf(value: Json, obfuscator: Obfuscator, inner: (item: Json) => Json): JsonObject {
  if (!isJsonObject(value)) throw new RangeError('a schema is not valid');
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [obfuscator.name(name), inner(item)]));
}

function namesOf(value: Json, obfuscator: Obfuscator): Json {
  if (!Array.isArray(value)) throw new RangeError('a schema is not valid');
  return value.map((name) => obfuscator.name(textOf(name)));
}

/** A reference into the schema: its keywords stay, and its names have the placeholders of the properties. */
function referenceOf(value: Json, obfuscator: Obfuscator): string {
  const [root = '', ...parts] = decodeURIComponent(textOf(value)).split('/');
  const shown = parts.map((part) => {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    return SUBSCHEMAS.has(name) || ASSERTIONS.has(name) || /^\d{1,4}$/.test(name) ? name : obfuscator.name(name);
  });
  return [root === '#' ? '#' : obfuscator.text(root), ...shown].join('/');
}

function textOf(value: Json): string {
  if (typeof value !== 'string') throw new RangeError('a schema is not valid');
  return value;
}
