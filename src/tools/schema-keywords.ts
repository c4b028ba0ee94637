import { isJsonObject, type Json } from '../lib/json.ts';

/** How a keyword carries subschemas: a schema, a list of them, a map of them, or (draft-07 `items`) one or a list. */
export type Carries = 'schema' | 'list' | 'map' | 'schema-or-list' | 'schemas-or-names';

/** Keywords whose subschemas apply to the same value as the schema they stand in. */
export const IN_PLACE: ReadonlyMap<string, Carries> = new Map([
  ['allOf', 'list'],
  ['anyOf', 'list'],
  ['oneOf', 'list'],
  ['not', 'schema'],
  ['if', 'schema'],
  ['then', 'schema'],
  ['else', 'schema'],
  ['dependentSchemas', 'map'],
  ['dependencies', 'schemas-or-names'],
]);

/** Keywords whose subschemas apply to members of an object. */
export const TO_MEMBERS: ReadonlyMap<string, Carries> = new Map([
  ['properties', 'map'],
  ['patternProperties', 'map'],
  ['additionalProperties', 'schema'],
  ['propertyNames', 'schema'],
  ['unevaluatedProperties', 'schema'],
]);

/** Keywords whose subschemas apply to items of a list. */
export const TO_ITEMS: ReadonlyMap<string, Carries> = new Map([
  ['items', 'schema-or-list'],
  ['prefixItems', 'list'],
  ['additionalItems', 'schema'],
  ['contains', 'schema'],
  ['unevaluatedItems', 'schema'],
]);

/** Keywords whose subschemas apply to nothing until they are referred to. */
export const DEFINITIONS: ReadonlyMap<string, Carries> = new Map([
  ['$defs', 'map'],
  ['definitions', 'map'],
]);

const TYPES: readonly string[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

const isType = (value: Json): boolean => typeof value === 'string' && TYPES.includes(value);
const finite = (value: Json): boolean => typeof value === 'number' && Number.isFinite(value);
const count = (value: Json): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const names = (value: Json): boolean => Array.isArray(value) && value.every((name) => typeof name === 'string');
const distinct = (value: Json): boolean => Array.isArray(value) && new Set(value).size === value.length;

export interface ValueRule {
  /** What the keyword's value must be, in words. */
  must: string;
  holds(value: Json): boolean;
}

/** Keywords that assert something by a value of their own. */
export const ASSERTIONS: ReadonlyMap<string, ValueRule> = new Map<string, ValueRule>([
  [
    'type',
    {
      must: `be one of ${TYPES.join(', ')}, or a list of them`,
      holds: (value) =>
        Array.isArray(value) ? value.length > 0 && distinct(value) && value.every(isType) : isType(value),
    },
  ],
  ['enum', { must: 'be a list with at least one value', holds: (value) => Array.isArray(value) && value.length > 0 }],
  ['const', { must: 'be a JSON value', holds: () => true }],
  ['required', { must: 'be a list of distinct member names', holds: (value) => names(value) && distinct(value) }],
  [
    'dependentRequired',
    { must: 'map names to lists of names', holds: (value) => isJsonObject(value) && Object.values(value).every(names) },
  ],
  ['minimum', { must: 'be a number', holds: finite }],
  ['maximum', { must: 'be a number', holds: finite }],
  ['exclusiveMinimum', { must: 'be a number', holds: finite }],
  ['exclusiveMaximum', { must: 'be a number', holds: finite }],
  [
    'multipleOf',
    { must: 'be a number above 0', holds: (value) => typeof value === 'number' && finite(value) && value > 0 },
  ],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(
    (keyword): [string, ValueRule] => [keyword, { must: 'be a whole number of at least 0', holds: count }],
  ),
  ['minContains', { must: 'be a whole number of at least 0', holds: count }],
  ['maxContains', { must: 'be a whole number of at least 0', holds: count }],
  ['uniqueItems', { must: 'be true or false', holds: (value) => typeof value === 'boolean' }],
  ['nullable', { must: 'be true or false', holds: (value) => typeof value === 'boolean' }],
  ['pattern', { must: 'be a regular expression', holds: (value) => typeof value === 'string' }],
  ['format', { must: 'be text', holds: (value) => typeof value === 'string' }],
]);

/** Said about a schema and checked by nobody. Members that begin with `x-` are the same. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title',
  'description',
  'default',
  'example',
  'examples',
  '$comment',
  '$schema',
  'deprecated',
  'readOnly',
  'writeOnly',
  'contentMediaType',
  'contentEncoding',
  'contentSchema',
]);

export function isAnnotation(keyword: string): boolean {
  return ANNOTATIONS.has(keyword) || keyword.startsWith('x-');
}

/** Keywords that reach outside the schema, or let data decide what is checked. */
export const FORBIDDEN: ReadonlySet<string> = new Set([
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$anchor',
  '$vocabulary',
  '$data',
  '$async',
  'discriminator',
]);

/** Names of members that change what an object is when assigned. */
export const POISONED_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
