import type { ApiObject } from '../cluster/api-client.ts';

/** A member of an object: field names, and `[]` for the first entry of a list. The last may be the field a `required` names. */
type Path = readonly string[];

/** One bound of a schema and a value that breaks it. */
export interface Bound {
  readonly path: Path;
  readonly keyword: string;
  readonly bad: unknown;
  /** What the API server says of it. */
  readonly says: RegExp;
}

/** Maps take any name. */
const ANY_NAME = 'any';
const NEVER = '\u0001';
const OTHER_TYPE: Record<string, unknown> = {
  string: 7,
  integer: 'x',
  number: 'x',
  boolean: 'x',
  object: 'x',
  array: 'x',
};

/** Every bound below a schema of a CustomResourceDefinition, outermost first. */
export function bounds(schema: ApiObject, path: Path): Bound[] {
  const found = [...valueBounds(schema, path), ...listBounds(schema, path), ...requiredBounds(schema, path)];
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, ApiObject>);
  found.push(...properties.flatMap(([name, child]) => bounds(child, [...path, name])));
  if (schema['items'] !== undefined) found.push(...bounds(schema['items'] as ApiObject, [...path, '[]']));
  const values = schema['additionalProperties'];
  if (typeof values === 'object' && values !== null) found.push(...bounds(values as ApiObject, [...path, ANY_NAME]));
  return found;
}

/** The object with a value at a path; what is missing on the way is made. */
export function placed(object: ApiObject, path: Path, value: unknown): ApiObject {
  return place(structuredClone(object), path, value) as ApiObject;
}

/** The path as the API server writes it. */
export function fieldOf(path: Path): string {
  return path.join('.').replaceAll('.[]', '[0]');
}

function place(at: unknown, [segment, ...rest]: Path, value: unknown): unknown {
  if (segment === undefined) return value;
  if (segment === '[]') {
    const [first, ...others] = Array.isArray(at) ? (at as unknown[]) : [undefined];
    return [place(first, rest, value), ...others];
  }
  const fields = typeof at === 'object' && at !== null ? (at as ApiObject) : {};
  const changed = { ...fields, [segment]: place(fields[segment], rest, value) };
  if (changed[segment] === undefined) delete changed[segment];
  return changed;
}

function valueBounds(schema: ApiObject, path: Path): Bound[] {
  const { minLength, maxLength, minimum, maximum } = schema as Record<string, number | undefined>;
  const table: [keyword: string, bad: unknown, says: RegExp][] = [
    ['type', OTHER_TYPE[schema['type'] as string], /must be of type/],
    ['enum', NEVER, /Unsupported value/],
    ['pattern', NEVER, /should match/],
    ['minLength', 'a'.repeat(Math.max((minLength ?? 0) - 1, 0)), /should be at least \d+ chars long/],
    ['maxLength', 'a'.repeat((maxLength ?? 0) + 1), /Too long/],
    ['minimum', (minimum ?? 0) - 1, /should be greater than or equal to/],
    ['maximum', (maximum ?? 0) + 1, /should be less than or equal to/],
  ];
  if (schema['format'] === 'date-time') table.push(['format', 'yesterday', /must be of type date-time/]);
  return carried(schema, path, table);
}

function listBounds(schema: ApiObject, path: Path): Bound[] {
  const { minItems, maxItems, minProperties, maxProperties } = schema as Record<string, number | undefined>;
  const entry = filler((schema['items'] ?? {}) as ApiObject);
  const entries = (count: number) => Array.from({ length: count }, () => entry);
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'a']));
  const found = carried(schema, path, [
    ['minItems', entries(Math.max((minItems ?? 0) - 1, 0)), /should have at least \d+ items/],
    ['maxItems', entries((maxItems ?? 0) + 1), /Too many/],
    ['minProperties', fields(Math.max((minProperties ?? 0) - 1, 0)), /should have at least \d+ properties/],
    ['maxProperties', fields((maxProperties ?? 0) + 1), /Too many/],
  ]);
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'set' && kind !== 'map') return found;
  const keys = (schema['x-kubernetes-list-map-keys'] ?? []) as string[];
  const same = kind === 'set' ? entry : Object.fromEntries(keys.map((key) => [key, 'a']));
  return [...found, { path, keyword: `list of type ${kind}`, bad: [same, same], says: /Duplicate value/ }];
}

function requiredBounds(schema: ApiObject, path: Path): Bound[] {
  const names = (schema['required'] ?? []) as string[];
  return names.map((name) => ({ path: [...path, name], keyword: 'required', bad: undefined, says: /Required value/ }));
}

function carried(schema: ApiObject, path: Path, table: [string, unknown, RegExp][]): Bound[] {
  return table.flatMap(([keyword, bad, says]) => (schema[keyword] === undefined ? [] : [{ path, keyword, bad, says }]));
}

function filler({ type }: ApiObject): unknown {
  if (type === 'object') return {};
  if (type === 'array') return [];
  if (type === 'integer') return 1;
  return type === 'boolean' ? true : 'a';
}
