import { isJsonObject, type Json, type JsonObject, member } from '../../../lib/json.ts';
import type { JsonPath } from './nodes.ts';
import type { SeededRandom } from './seeded-random.ts';

const MAX_DEPTH = 6;
const MAX_REFERENCES = 8;

const SAMPLES_BY_FORMAT: Readonly<Record<string, readonly string[]>> = {
  date: ['2024-02-29', '1970-01-01'],
  time: ['00:00:00Z', '23:59:59Z'],
  'date-time': ['2024-02-29T12:00:00Z', '1970-01-01T00:00:00Z'],
  duration: ['P1D', 'PT0S'],
  email: ['a@example.com', 'first.last+tag@sub.example.org'],
  hostname: ['example.com', 'a.b.example.org'],
  ipv4: ['192.0.2.1', '0.0.0.0'],
  uuid: ['00000000-0000-4000-8000-000000000000'],
  uri: ['https://example.com/', 'https://example.com/a?b=c#d'],
  'json-pointer': ['', '/a/0'],
};
const WORDS = ['', 'a', 'Hello World', 'alpha beta', 'x1', 'The quick brown fox'];

/** The schema of the value at a path, with local references followed; `{}` when the schema does not say. */
export function schemaAt(root: JsonObject, path: JsonPath): JsonObject {
  let schema = followReferences(root, root);
  for (const key of path) schema = followReferences(root, childSchema(schema, key));
  return schema;
}

function childSchema(schema: JsonObject, key: string | number): Json | undefined {
  if (typeof key === 'string') return member(schema.properties, key) ?? schema.additionalProperties;
  const prefix = Array.isArray(schema.prefixItems) ? schema.prefixItems[key] : undefined;
  return prefix ?? schema.items;
}

function followReferences(root: JsonObject, given: Json | undefined): JsonObject {
  let schema: Json | undefined = given;
  for (let count = 0; count < MAX_REFERENCES; count += 1) {
    const reference = member(schema, '$ref');
    if (typeof reference !== 'string') break;
    const segments = reference
      .replace(/^#\/?/, '')
      .split('/')
      .filter((segment) => segment !== '');
    schema = segments.reduce<Json | undefined>((value, segment) => member(value, segment), root);
  }
  return isJsonObject(schema) ? schema : {};
}

/** The types that a schema allows; empty when it does not say. */
export function typesOf(schema: JsonObject): string[] {
  const { type } = schema;
  return (Array.isArray(type) ? type : [type]).filter((name) => typeof name === 'string');
}

/** A value that probably matches the schema. The caller validates it. */
export function sampleOf(root: JsonObject, given: Json | undefined, random: SeededRandom, depth = 0): Json {
  const schema = followReferences(root, given);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return random.pick(schema.enum) ?? null;
  const branches = [schema.anyOf, schema.oneOf].find((list) => Array.isArray(list));
  if (Array.isArray(branches) && depth < MAX_DEPTH) return sampleOf(root, random.pick(branches), random, depth + 1);
  const type = random.pick(typesOf(schema)) ?? (schema.properties === undefined ? 'string' : 'object');
  if (type === 'array') return sampleList(root, schema, random, depth);
  if (type === 'object') return sampleObject(root, schema, random, depth);
  return sampleScalar(schema, type, random);
}

function sampleScalar(schema: JsonObject, type: string, random: SeededRandom): Json {
  if (type === 'boolean') return random.integer(2) === 0;
  if (type === 'null') return null;
  if (type === 'integer' || type === 'number') return sampleNumber(schema, type, random);
  const samples = typeof schema.format === 'string' ? SAMPLES_BY_FORMAT[schema.format] : undefined;
  return random.pick(samples ?? WORDS) ?? '';
}

function sampleNumber({ minimum, maximum }: JsonObject, type: string, random: SeededRandom): number {
  const low = typeof minimum === 'number' ? minimum : -20;
  const high = typeof maximum === 'number' ? maximum : Math.max(low, 0) + 100;
  const value = low + random.integer(Math.max(1, Math.min(1_000, Math.floor(high - low) + 1)));
  return type === 'integer' || random.integer(2) === 0 ? Math.ceil(value) : value + 0.5;
}

function sampleList(root: JsonObject, schema: JsonObject, random: SeededRandom, depth: number): Json[] {
  const least = typeof schema.minItems === 'number' ? Math.min(schema.minItems, 20) : 0;
  const length = depth >= MAX_DEPTH ? least : least + random.integer(5);
  return Array.from({ length }, () => sampleOf(root, schema.items, random, depth + 1));
}

function sampleObject(root: JsonObject, schema: JsonObject, random: SeededRandom, depth: number): JsonObject {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const chosen = Object.entries(properties).filter(
    ([name]) => required.includes(name) || (depth < MAX_DEPTH && random.integer(2) === 0),
  );
  return Object.fromEntries(chosen.map(([name, property]) => [name, sampleOf(root, property, random, depth + 1)]));
}
