import type { ApiObject } from '../../cluster/api-client.ts';

/** A member of an object: field names, and `[]` for the first entry of a list. The last may be the field a `required` names. */
type Path = readonly string[];

/** One bound of a schema and a value that violates it. */
export interface SchemaBound {
  readonly path: Path;
  readonly keyword: string;
  readonly invalid: unknown;
  /** The API server's error message for this violation. */
  readonly message: RegExp;
}

/** The key used for a member of a map (`additionalProperties`). */
const ANY_NAME = 'any';
const NEVER_VALID = '\u0001';
const OTHER_TYPE: Record<string, unknown> = {
  string: 7,
  integer: 'x',
  number: 'x',
  boolean: 'x',
  object: 'x',
  array: 'x',
};

/** All bounds of a CustomResourceDefinition's schema, outermost first. */
export function schemaBounds(schema: ApiObject, path: Path): SchemaBound[] {
  const found = [...valueBounds(schema, path), ...listBounds(schema, path), ...requiredBounds(schema, path)];
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, ApiObject>);
  found.push(...properties.flatMap(([name, child]) => schemaBounds(child, [...path, name])));
  if (schema['items'] !== undefined) found.push(...schemaBounds(schema['items'] as ApiObject, [...path, '[]']));
  const values = schema['additionalProperties'];
  if (typeof values === 'object' && values !== null)
    found.push(...schemaBounds(values as ApiObject, [...path, ANY_NAME]));
  return found;
}

/** A copy of the object with the value set at the path. Creates missing parents; an undefined value removes the field. */
export function withValueAt(object: ApiObject, path: Path, value: unknown): ApiObject {
  return setAt(structuredClone(object), path, value) as ApiObject;
}

/** The path in the form that the API server uses in error messages. */
export function fieldPath(path: Path): string {
  return path.join('.').replaceAll('.[]', '[0]');
}

function setAt(target: unknown, [segment, ...rest]: Path, value: unknown): unknown {
  if (segment === undefined) return value;
  if (segment === '[]') {
    const [first, ...others] = Array.isArray(target) ? (target as unknown[]) : [undefined];
    return [setAt(first, rest, value), ...others];
  }
  const fields = typeof target === 'object' && target !== null ? (target as ApiObject) : {};
  const changed = { ...fields, [segment]: setAt(fields[segment], rest, value) };
  if (changed[segment] === undefined) delete changed[segment];
  return changed;
}

function valueBounds(schema: ApiObject, path: Path): SchemaBound[] {
  const { minLength, maxLength, minimum, maximum } = schema as Record<string, number | undefined>;
  const table: [keyword: string, invalid: unknown, message: RegExp][] = [
    ['type', OTHER_TYPE[schema['type'] as string], /must be of type/],
    ['enum', NEVER_VALID, /Unsupported value/],
    ['pattern', NEVER_VALID, /should match/],
    ['minLength', 'a'.repeat(Math.max((minLength ?? 0) - 1, 0)), /should be at least \d+ chars long/],
    ['maxLength', 'a'.repeat((maxLength ?? 0) + 1), /Too long/],
    ['minimum', (minimum ?? 0) - 1, /should be greater than or equal to/],
    ['maximum', (maximum ?? 0) + 1, /should be less than or equal to/],
  ];
  if (schema['format'] === 'date-time') table.push(['format', 'yesterday', /must be of type date-time/]);
  return presentBounds(schema, path, table);
}

function listBounds(schema: ApiObject, path: Path): SchemaBound[] {
  const { minItems, maxItems, minProperties, maxProperties } = schema as Record<string, number | undefined>;
  const entry = fillerValue((schema['items'] ?? {}) as ApiObject);
  const entries = (count: number) => Array.from({ length: count }, () => entry);
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'a']));
  const found = presentBounds(schema, path, [
    ['minItems', entries(Math.max((minItems ?? 0) - 1, 0)), /should have at least \d+ items/],
    ['maxItems', entries((maxItems ?? 0) + 1), /Too many/],
    ['minProperties', fields(Math.max((minProperties ?? 0) - 1, 0)), /should have at least \d+ properties/],
    ['maxProperties', fields((maxProperties ?? 0) + 1), /Too many/],
  ]);
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'set' && kind !== 'map') return found;
  const keys = (schema['x-kubernetes-list-map-keys'] ?? []) as string[];
  const same = kind === 'set' ? entry : Object.fromEntries(keys.map((key) => [key, 'a']));
  return [...found, { path, keyword: `list of type ${kind}`, invalid: [same, same], message: /Duplicate value/ }];
}

function requiredBounds(schema: ApiObject, path: Path): SchemaBound[] {
  const names = (schema['required'] ?? []) as string[];
  return names.map((name) => ({
    path: [...path, name],
    keyword: 'required',
    invalid: undefined,
    message: /Required value/,
  }));
}

function presentBounds(schema: ApiObject, path: Path, table: [string, unknown, RegExp][]): SchemaBound[] {
  return table.flatMap(([keyword, invalid, message]) =>
    schema[keyword] === undefined ? [] : [{ path, keyword, invalid, message }],
  );
}

function fillerValue({ type }: ApiObject): unknown {
  if (type === 'object') return {};
  if (type === 'array') return [];
  if (type === 'integer') return 1;
  return type === 'boolean' ? true : 'a';
}
