import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { isJsonObject, type Json, type JsonObject, parseUntrustedJson } from '../../../lib/json.ts';

/** What is kept of a schema: enough to exclude tools whose values cannot be those of another one. */
interface SchemaShape {
  /** JSON types; empty: any. */
  readonly types: readonly string[];
  readonly members: ReadonlyMap<string, readonly string[]>;
  readonly required: readonly string[];
  /** Whether an object may have further members. */
  readonly isOpen: boolean;
}

/** The shapes of the schemas of a tool. An absent one excludes nothing. */
export interface ToolShapes {
  readonly input: SchemaShape | undefined;
  readonly output: SchemaShape | undefined;
}

/** The operator keeps the shapes of all tools. */
const MAX_MEMBERS = 32;
const MAX_NAME = 64;
/** Keywords with which a schema says more than its members. */
const OTHER_KEYWORDS = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'patternProperties'];

export function shapesOf({
  inputSchema,
  outputSchema,
}: Pick<ToolArtifact, 'inputSchema' | 'outputSchema'>): ToolShapes {
  return { input: shapeOf(inputSchema), output: shapeOf(outputSchema) };
}

/** Whether the inputs and outputs of each tool can be those of the other one. Pure. */
export function areCompatible(one: ToolShapes, other: ToolShapes): boolean {
  return mayShareValues(one.input, other.input) && mayShareValues(one.output, other.output);
}

function mayShareValues(one: SchemaShape | undefined, other: SchemaShape | undefined): boolean {
  if (one === undefined || other === undefined) return true;
  return overlap(one.types, other.types) && mayAccept(one, other) && mayAccept(other, one);
}

/** Whether the schema can accept a value of the other one, which has its required members, and no member that it does not declare. */
function mayAccept(schema: SchemaShape, { members, required }: SchemaShape): boolean {
  const hasOwn = schema.required.every((name) => members.has(name));
  return (
    hasOwn &&
    required.every((name) => {
      const types = schema.members.get(name);
      return types === undefined ? schema.isOpen : overlap(types, members.get(name) ?? []);
    })
  );
}

function overlap(one: readonly string[], other: readonly string[]): boolean {
  return one.length === 0 || other.length === 0 || one.some((type) => other.includes(type));
}

/** Undefined for a schema that says more than its members, or has many. */
function shapeOf(text: string): SchemaShape | undefined {
  const schema = parsed(text);
  if (!isJsonObject(schema) || OTHER_KEYWORDS.some((keyword) => Object.hasOwn(schema, keyword))) return undefined;
  const { properties = {}, required = [], additionalProperties } = schema;
  if (!isJsonObject(properties) || !Array.isArray(required)) return undefined;
  const entries = Object.entries(properties);
  const isLarge = entries.length > MAX_MEMBERS || required.length > MAX_MEMBERS;
  if (isLarge || entries.some(([name]) => name.length > MAX_NAME)) return undefined;
  return {
    types: typesOf(schema),
    members: new Map(entries.map(([name, member]) => [name, isJsonObject(member) ? typesOf(member) : []])),
    required: required.filter((name) => typeof name === 'string').map((name) => name.slice(0, MAX_NAME)),
    isOpen: additionalProperties !== false,
  };
}

/** An integer is a number too, so that both stand for one type. */
function typesOf({ type }: JsonObject): string[] {
  const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === 'string');
  return [...new Set(types.slice(0, 7).map((one) => (one === 'integer' ? 'number' : one.slice(0, MAX_NAME))))];
}

function parsed(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}
