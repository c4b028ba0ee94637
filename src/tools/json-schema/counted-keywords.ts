import { _, type Ajv2020, type FormatDefinition, str } from 'ajv/dist/2020.js';
import { canonicalJson } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { SCHEMA_FORMATS } from './formats.ts';
import { DEFINITIONS, IN_PLACE, type SubschemaForm, TO_ITEMS, TO_MEMBERS } from './keywords.ts';
import type { WorkMeter } from './work.ts';

/** Units of work, as measured: a visit that fails makes an error object; the members of large objects are slow to list. */
const UNITS = { visit: 25, name: 4, scalar: 3, compared: 20, member: 6, memberOfLargeObject: 60 };
const LARGE_OBJECT = 512;
/** Units per character of a text whose format is checked. */
const FORMAT_UNITS = { uri: 8, other: 2 };

/** The keyword that counts a visit. The schema reader drops unknown keywords, so no author can write it. */
const VISIT = 'temper:visit';

const SUBSCHEMAS: ReadonlyMap<string, SubschemaForm> = new Map([
  ...IN_PLACE,
  ...TO_MEMBERS,
  ...TO_ITEMS,
  ...DEFINITIONS,
]);

/** Keywords that go through all members of an object. */
const MEMBER_LOOPS = [
  'minProperties',
  'maxProperties',
  ...[...TO_MEMBERS.keys()].filter((keyword) => keyword !== 'properties'),
];

/** What one visit of a subschema costs besides its subschemas. */
interface VisitCost {
  units: number;
  /** Keywords that go through all members of an object. */
  memberLoops: number;
  /** Size of the lists and objects of `enum` and `const`, with which a list or an object is compared. */
  compared: number;
}

/** The cleaned schema with a count of its visits in every subschema. */
export function withVisitCounts(schema: Json): Json {
  if (!isJsonObject(schema)) return schema;
  const counted: JsonObject = { [VISIT]: { ...visitCost(schema) } };
  for (const [keyword, value] of Object.entries(schema)) {
    const form = SUBSCHEMAS.get(keyword);
    counted[keyword] = form === undefined ? value : countedSubschemas(value, form);
  }
  return counted;
}

function countedSubschemas(value: Json, form: SubschemaForm): Json {
  if (Array.isArray(value)) return value.map(withVisitCounts);
  if (!isJsonObject(value) || (form !== 'map' && form !== 'schemas-or-names')) return withVisitCounts(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, child]) => [name, Array.isArray(child) ? child : withVisitCounts(child)]),
  );
}

function visitCost(schema: JsonObject): VisitCost {
  const { enum: values, const: value, properties, required, dependentRequired, dependencies } = schema;
  const expected = [...(Array.isArray(values) ? values : []), ...(value === undefined ? [] : [value])];
  const compared = expected.filter((item) => typeof item === 'object' && item !== null);
  const lists = [properties, required].map((part) => (part === undefined ? 0 : valuesIn(part, 1)));
  const maps = [dependentRequired, dependencies].map((part) => (part === undefined ? 0 : valuesIn(part, 2)));
  const names = [...lists, ...maps].reduce((sum, count) => sum + count, 0);
  return {
    units: UNITS.visit + UNITS.scalar * expected.length + UNITS.name * names,
    memberLoops: MEMBER_LOOPS.filter((keyword) => Object.hasOwn(schema, keyword)).length,
    compared: compared.reduce<number>((sum, item) => sum + valuesIn(item, Number.POSITIVE_INFINITY), 0),
  };
}

/** The number of values inside a value, down to a depth. */
function valuesIn(value: Json, depth: number): number {
  if (typeof value !== 'object' || value === null || depth === 0) return 1;
  return Object.values(value).reduce<number>((sum, item) => sum + valuesIn(item, depth - 1), 1);
}

/** Replaces the keywords whose work grows with the value by ones that count it, and adds the one that counts visits. */
export function addCountedKeywords(ajv: Ajv2020, meter: WorkMeter): void {
  const visit = (cost: VisitCost, data: Json): void => meter.spend(unitsOf(cost, data, meter));
  const lengthOf = (text: string): number => meter.lengthOf(text);
  ajv.addKeyword({
    keyword: VISIT,
    before: 'const',
    // Code in place of a function that can fail, which takes the library many times as long to compile.
    code: ({ gen, data, schema }) => {
      const call = gen.scopeValue('func', { ref: visit });
      gen.code(_`${call}(${gen.scopeValue('obj', { ref: schema as VisitCost })}, ${data})`);
    },
  });
  for (const [keyword, comparison] of [['minLength', 'fewer'] as const, ['maxLength', 'more'] as const]) {
    ajv.removeKeyword(keyword);
    ajv.addKeyword({
      keyword,
      type: 'string',
      schemaType: 'number',
      error: { message: ({ schemaCode }) => str`must NOT have ${comparison} than ${schemaCode} characters` },
      code: (context) => {
        const { gen, data, schemaCode } = context;
        const length = _`${gen.scopeValue('func', { ref: lengthOf })}(${data})`;
        context.fail(keyword === 'minLength' ? _`${length} < ${schemaCode}` : _`${length} > ${schemaCode}`);
      },
    });
  }
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not contain duplicate items' },
    // The library compares every pair; comparing canonical texts takes linear time.
    validate: (wanted: boolean, items: Json[]) => !wanted || areUnique(items, meter),
  });
}

function unitsOf(cost: VisitCost, data: Json, meter: WorkMeter): number {
  if (typeof data !== 'object' || data === null) return cost.units;
  const compared = cost.compared * UNITS.compared;
  if (cost.memberLoops === 0 || Array.isArray(data)) return cost.units + compared;
  const members = meter.membersOf(data);
  const perMember = members > LARGE_OBJECT ? UNITS.memberOfLargeObject : UNITS.member;
  return cost.units + compared + cost.memberLoops * members * perMember;
}

function areUnique(items: Json[], meter: WorkMeter): boolean {
  meter.spend(meter.sizeOf(items));
  return new Set(items.map(canonicalJson)).size === items.length;
}

/** The checked formats, which count the characters that they read. */
export function countedFormats(meter: WorkMeter): Record<string, FormatDefinition<string>> {
  return Object.fromEntries(
    [...SCHEMA_FORMATS].map(([name, test]) => {
      const units = name === 'uri' ? FORMAT_UNITS.uri : FORMAT_UNITS.other;
      const validate = (text: string): boolean => {
        meter.spend(units * Math.min(text.length, MAX_FORMAT_CHARACTERS));
        return test(text);
      };
      return [name, { type: 'string', validate }];
    }),
  );
}

/** Longer texts are refused by every format without being read. */
const MAX_FORMAT_CHARACTERS = 2_048;
