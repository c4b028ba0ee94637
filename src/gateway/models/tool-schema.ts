import { isJsonObject, type Json } from '../../lib/json.ts';

const TYPES: ReadonlySet<Json> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
/** Keywords whose value maps names to schemas. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
/** Keywords whose value is data, in which `type` is a name like any other. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'example']);

/**
 * Whether each `type` of the schema is a type of JSON Schema. Providers reject any other one, and their messages repeat it: it would be a text of
 * an agent in an error of a provider. The caller bounds the depth.
 */
export function hasKnownTypes(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.every(hasKnownTypes);
  if (!isJsonObject(schema)) return true;
  return Object.entries(schema).every(([keyword, value]) => {
    if (keyword === 'type') return isTypeKeyword(value);
    if (DATA.has(keyword)) return true;
    if (MAPS.has(keyword) && isJsonObject(value)) return Object.values(value).every(hasKnownTypes);
    return hasKnownTypes(value);
  });
}

function isTypeKeyword(value: Json): boolean {
  return Array.isArray(value) ? value.length > 0 && value.every((type) => TYPES.has(type)) : TYPES.has(value);
}
