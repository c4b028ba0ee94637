import { isJsonObject, type Json } from '../../lib/json.ts';

/** The form of a keyword's subschemas: one schema, a list, a map, or (`items` of draft-07) one or a list. */
export type SubschemaForm = 'schema' | 'list' | 'map' | 'schema-or-list' | 'schemas-or-names';

/** Keywords whose subschemas apply to the same value as the schema that contains the keyword. */
export const IN_PLACE: ReadonlyMap<string, SubschemaForm> = new Map([
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
export const TO_MEMBERS: ReadonlyMap<string, SubschemaForm> = new Map([
  ['properties', 'map'],
  ['patternProperties', 'map'],
  ['additionalProperties', 'schema'],
  ['propertyNames', 'schema'],
  ['unevaluatedProperties', 'schema'],
]);

/** Keywords whose subschemas apply to items of a list. */
export const TO_ITEMS: ReadonlyMap<string, SubschemaForm> = new Map([
  ['items', 'schema-or-list'],
  ['prefixItems', 'list'],
  ['additionalItems', 'schema'],
  ['contains', 'schema'],
  ['unevaluatedItems', 'schema'],
]);

/** Keywords whose subschemas apply only through a `$ref`. */
export const DEFINITIONS: ReadonlyMap<string, SubschemaForm> = new Map([
  ['$defs', 'map'],
  ['definitions', 'map'],
]);

const TYPES: readonly string[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

const isType = (value: Json): boolean => typeof value === 'string' && TYPES.includes(value);
const isFiniteNumber = (value: Json): boolean => typeof value === 'number' && Number.isFinite(value);
const isCount = (value: Json): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const isNameList = (value: Json): boolean => Array.isArray(value) && value.every((name) => typeof name === 'string');
const isDistinct = (value: Json): boolean => Array.isArray(value) && new Set(value).size === value.length;

export interface ValueRule {
  /** The requirement for the keyword's value, as the end of a sentence with `must`. */
  must: string;
  holds(value: Json): boolean;
}

/** Keywords whose own value is an assertion. */
export const ASSERTIONS: ReadonlyMap<string, ValueRule> = new Map<string, ValueRule>([
  [
    'type',
    {
      must: `be one of ${TYPES.join(', ')}, or a list of them`,
      holds: (value) =>
        Array.isArray(value) ? value.length > 0 && isDistinct(value) && value.every(isType) : isType(value),
    },
  ],
  ['enum', { must: 'be a list with at least one value', holds: (value) => Array.isArray(value) && value.length > 0 }],
  ['const', { must: 'be a JSON value', holds: () => true }],
  [
    'required',
    { must: 'be a list of distinct member names', holds: (value) => isNameList(value) && isDistinct(value) },
  ],
  [
    'dependentRequired',
    {
      must: 'map names to lists of names',
      holds: (value) => isJsonObject(value) && Object.values(value).every(isNameList),
    },
  ],
  ['minimum', { must: 'be a number', holds: isFiniteNumber }],
  ['maximum', { must: 'be a number', holds: isFiniteNumber }],
  ['exclusiveMinimum', { must: 'be a number', holds: isFiniteNumber }],
  ['exclusiveMaximum', { must: 'be a number', holds: isFiniteNumber }],
  [
    'multipleOf',
    { must: 'be a number above 0', holds: (value) => typeof value === 'number' && isFiniteNumber(value) && value > 0 },
  ],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(
    (keyword): [string, ValueRule] => [keyword, { must: 'be a whole number of at least 0', holds: isCount }],
  ),
  ['minContains', { must: 'be a whole number of at least 0', holds: isCount }],
  ['maxContains', { must: 'be a whole number of at least 0', holds: isCount }],
  ['uniqueItems', { must: 'be true or false', holds: (value) => typeof value === 'boolean' }],
  ['nullable', { must: 'be true or false', holds: (value) => typeof value === 'boolean' }],
  ['pattern', { must: 'be a regular expression', holds: (value) => typeof value === 'string' }],
  ['format', { must: 'be text', holds: (value) => typeof value === 'string' }],
]);

/** Keywords that describe a schema and are not checked. Members that begin with `x-` are annotations too. */
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

/** Keywords that refer outside the schema, or let the data choose the checks. */
export const FORBIDDEN_KEYWORDS: ReadonlySet<string> = new Set([
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

/** Member names whose assignment can change the prototype or the constructor of an object. */
export const UNSAFE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
