import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';

const MAX_DEPTH = 8;

/**
 * A simple schema that all samples match, and that later values of the same kind match too: whole numbers do not make an
 * `integer`, members that some samples lack are optional, and `null` alone says nothing. `{}` without samples.
 */
export function inferSchema(samples: readonly Json[], depth = 0): JsonObject {
  if (samples.length === 0 || depth > MAX_DEPTH) return {};
  const types = new Set(samples.map(typeOf));
  if (types.size === 1 && types.has('null')) return {};
  const schema: JsonObject = { type: types.size === 1 ? [...types].join('') : [...types].toSorted() };
  const objects = samples.filter(isJsonObject);
  if (objects.length > 0) {
    schema['properties'] = inferProperties(objects, depth);
    const required = Object.keys(objects[0] ?? {}).filter((key) =>
      objects.every((sample) => Object.hasOwn(sample, key)),
    );
    if (required.length > 0) schema['required'] = required;
  }
  const items = samples.filter((sample) => Array.isArray(sample)).flat();
  if (items.length > 0) schema['items'] = inferSchema(items, depth + 1);
  return schema;
}

function inferProperties(objects: readonly JsonObject[], depth: number): JsonObject {
  const properties: JsonObject = {};
  for (const key of new Set(objects.flatMap((sample) => Object.keys(sample)))) {
    const values = objects.flatMap((sample) => (Object.hasOwn(sample, key) ? [sample[key] ?? null] : []));
    properties[key] = inferSchema(values, depth + 1);
  }
  return properties;
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}
