/** A structural schema, as a CustomResourceDefinition requires it. */
export type Structural = { [keyword: string]: unknown };

/** Keywords that are copied. All other keywords are translated, intentionally dropped (DROPPED), or an error. */
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
 * Keywords that a CRD expresses elsewhere, or not at all. Defaults are applied by the program and only documented: an API server
 * that filled them in would change the objects of users.
 */
const DROPPED: readonly string[] = ['additionalProperties', 'default', 'title', 'uniqueItems', 'patternProperties'];

/**
 * The structural form of a schema: every level has a type, constants become enums, maps use `additionalProperties`, and keywords
 * that the API server rejects are removed. Throws TypeError for a schema without structural form, such as a union of objects;
 * cross-field rules are CEL rules instead.
 */
export function structural(schema: object, path = 'spec'): Structural {
  const source = withType(schema as Structural, path);
  const result: Structural = {};
  for (const [keyword, value] of Object.entries(source)) {
    if (KEPT.includes(keyword) || keyword.startsWith('x-kubernetes-')) result[keyword] = value;
    else if (keyword === 'x-temper-pattern') result['pattern'] = value;
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

/** Adds the type to string enums, and turns a constant into an enum with one value. */
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

/** The value schema of a map with string keys. Undefined for a map of arbitrary values, which uses `x-kubernetes-preserve-unknown-fields`. */
function mapValues(source: Structural, path: string): Structural | undefined {
  const patterns = source['patternProperties'];
  if (patterns === undefined || source['x-kubernetes-preserve-unknown-fields'] === true) return undefined;
  const [values, ...more] = Object.values(patterns as Record<string, object>);
  if (values === undefined || more.length > 0) throw new TypeError(`${path}: a map can have only one value schema`);
  return structural(values, `${path}{}`);
}
