import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { isJsonObject } from '../../lib/json.ts';

/** Values that the search for the first violation looks at; typebox walks the whole value for it. */
const MAX_SEARCHED_VALUES = 1_000;

/** What a value breaks first. */
export interface Violation {
  /** A JSON pointer to the part, such as `/items/0`. */
  readonly path: string;
  readonly message: string;
}

/**
 * The first violation of a value that does not match its schema. Descends to the first invalid part until typebox can name its violation
 * cheaply, so that a large invalid value costs no more than a valid one.
 */
export function firstViolation(schema: TSchema, value: unknown, path = ''): Violation {
  if (!holdsMoreThan(value, MAX_SEARCHED_VALUES)) return namedViolation(schema, value, path);
  const part = invalidPart(schema, value);
  if (part !== undefined) return firstViolation(part.schema, part.value, `${path}/${part.name}`);
  // The value itself is wrong: too many items, unknown members, or no member of a union.
  return violationAt(path, violationOfContainer(schema, value));
}

function namedViolation(schema: TSchema, value: unknown, path: string): Violation {
  const [first] = Value.Errors(schema, value);
  return first === undefined
    ? violationAt(path, 'does not match its schema')
    : violationAt(`${path}${first.instancePath}`, first.message);
}

function violationAt(path: string, message: string): Violation {
  return { path, message };
}

interface ContainerSchema {
  items?: TSchema;
  maxItems?: number;
  properties?: Record<string, TSchema>;
}

interface Part {
  schema: TSchema;
  value: unknown;
  name: string;
}

/** The first invalid item or member. Undefined when the container itself is wrong, or when its schema is a union. */
function invalidPart(schema: TSchema, value: unknown): Part | undefined {
  const { items, properties } = schema as ContainerSchema;
  if (Array.isArray(value)) {
    if (items === undefined || tooManyItems(schema, value)) return undefined;
    const index = value.findIndex((item) => !Value.Check(items, item));
    return index < 0 ? undefined : { schema: items, value: value[index], name: String(index) };
  }
  if (!isJsonObject(value)) return undefined;
  for (const [name, member] of Object.entries(properties ?? {})) {
    if (Object.hasOwn(value, name) && !Value.Check(member, value[name])) {
      return { schema: member, value: value[name], name };
    }
  }
  return undefined;
}

function violationOfContainer(schema: TSchema, value: unknown): string {
  const { maxItems } = schema as ContainerSchema;
  return tooManyItems(schema, value) ? `must not have more than ${maxItems} items` : 'does not match its schema';
}

function tooManyItems(schema: TSchema, value: unknown): boolean {
  const { maxItems = Number.POSITIVE_INFINITY } = schema as ContainerSchema;
  return Array.isArray(value) && value.length > maxItems;
}

/** Stops counting at the limit. */
function holdsMoreThan(value: unknown, limit: number): boolean {
  const pending: unknown[] = [value];
  for (let counted = 0; pending.length > 0; counted += 1) {
    if (counted > limit || pending.length > limit) return true;
    const item = pending.pop();
    if (typeof item !== 'object' || item === null) continue;
    if (Array.isArray(item) && item.length > limit) return true;
    const inner = Array.isArray(item) ? item : Object.values(item);
    if (inner.length > limit) return true;
    for (const child of inner) pending.push(child);
  }
  return false;
}
