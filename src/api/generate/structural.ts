/** A schema as a CustomResourceDefinition may hold it. */
export type Structural = { [keyword: string]: unknown };

/** Kept as they are. Everything else is translated, dropped on purpose below, or an error. */
const KEPT: readonly string[] = [
  'type',
  'description',
  'format',
  'pattern',
  'enum',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'required',
];

/**
 * Said elsewhere in a CRD, or not at all. Defaults are the program's and are only documented: an API server that filled them in
 * would change what people wrote.
 */
const DROPPED: readonly string[] = ['additionalProperties', 'default', 'title', 'uniqueItems', 'patternProperties'];

/**
 * The structural form of a schema: every level typed, enums instead of constants, maps as `additionalProperties`, none of the
 * keywords an API server refuses. Throws TypeError for what has no such form, unions of objects above all; rules between fields
 * are CEL.
 */
export function structural(schema: object, path = 'spec'): Structural {
  const source = withType(schema as Structural, path);
  const result: Structural = {};
  for (const [keyword, value] of Object.entries(source)) {
    if (KEPT.includes(keyword) || keyword.startsWith('x-kubernetes-')) result[keyword] = value;
    else if (keyword === 'x-temper-enum') result['enum'] = value;
    else if (keyword === 'properties') result[keyword] = children(value as Record<string, object>, path);
    else if (keyword === 'items') result[keyword] = structural(value as object, `${path}[]`);
    else if (!DROPPED.includes(keyword) && !keyword.startsWith('x-temper-')) {
      throw new TypeError(`${path}: ${keyword} has no structural form`);
    }
  }
  if (source['type'] === 'integer') result['format'] = 'int64';
  const values = mapValues(source, path);
  return values === undefined ? result : { ...result, additionalProperties: values };
}

/** Enums of texts come without a type, and constants are enums of one. */
function withType(schema: Structural, path: string): Structural {
  const { const: constant, ...rest } = schema;
  const listed = constant === undefined ? rest : { ...rest, enum: [constant] };
  if (typeof listed['type'] === 'string') return listed;
  const values = listed['enum'];
  if (Array.isArray(values) && values.every((value) => typeof value === 'string')) return { type: 'string', ...listed };
  throw new TypeError(`${path}: the type is missing`);
}

function children(properties: Record<string, object>, path: string): Structural {
  return Object.fromEntries(
    Object.entries(properties).map(([name, child]) => [name, structural(child, `${path}.${name}`)]),
  );
}

/** The values of a map from any text; a map of anything is left to `x-kubernetes-preserve-unknown-fields`. */
function mapValues(source: Structural, path: string): Structural | undefined {
  const patterns = source['patternProperties'];
  if (patterns === undefined || source['x-kubernetes-preserve-unknown-fields'] === true) return undefined;
  const [values, ...more] = Object.values(patterns as Record<string, object>);
  if (values === undefined || more.length > 0)
    throw new TypeError(`${path}: one kind of values is the most a map can have`);
  return structural(values, `${path}{}`);
}
