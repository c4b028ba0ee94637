import { isJsonObject, jsonDepth, type Json, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { type ForgeViolation, TOOL_NAME } from '../request.ts';
import { REQUEST_ALIASES } from './aliases.ts';
import { normalizeImplementation, repairImplementation } from './implementation.ts';
import { inferSchema } from './infer-schema.ts';
import { normalizeLimits } from './limits.ts';
import { RequestNotes } from './request-notes.ts';
import { normalizeTests } from './test-cases.ts';
import { snakeCase } from './tool-name.ts';

/** A request in the documented form, and the changes that were needed. */
export interface NormalizedRequest {
  request: JsonObject;
  /** One sentence per change, for the author. */
  warnings: string[];
  /** The changes of the source alone. */
  sourceRepairs: string[];
  violations: ForgeViolation[];
}

const MAX_CHARACTERS = 262_144;
const MAX_DEPTH = 64;

/** Normalises a request as models write it to the documented form. Parts that it cannot read stay as they are; the shape gate reports them. */
export function normalizeRequest(input: Json): NormalizedRequest {
  const notes = new RequestNotes();
  const request = normalize(input, notes);
  const sourceRepairs = repairImplementation(request, notes);
  return { request, sourceRepairs, warnings: notes.warnings, violations: notes.violations };
}

/** The request in the documented form, except for its source, whose repair takes most of the time. */
export function normalizeExceptSource(input: Json): JsonObject {
  return normalize(input, new RequestNotes());
}

function normalize(input: Json, notes: RequestNotes): JsonObject {
  const text = jsonDepth(input, MAX_DEPTH) < MAX_DEPTH ? JSON.stringify(input) : undefined;
  if (text === undefined || text.length > MAX_CHARACTERS) {
    notes.report('the request is too large or nested too deeply');
    return {};
  }
  if (!hasFiniteNumbers(input)) {
    notes.report('the request contains a number that is not finite; write a number of JSON, or null');
    return {};
  }
  // From here on the request is a separate copy without members such as __proto__, which would change an object.
  const value = notes.parsed(parseUntrustedJson(text), 'the request');
  if (!isJsonObject(value)) {
    notes.report('the request must be a JSON object');
    return {};
  }
  const request = notes.renamed(withoutEnvelope(value, notes), REQUEST_ALIASES, '');
  for (const member of ['inputSchema', 'outputSchema', 'testCases'] as const) {
    const text = request[member];
    if (text !== undefined) request[member] = notes.parsed(text, member);
  }
  normalizeName(request, notes);
  request['implementation'] = normalizeImplementation(request, notes);
  if (request['testCases'] !== undefined) {
    request['testCases'] = normalizeTests(request['testCases'], request['outputSchema'], notes);
  }
  if (request['limits'] !== undefined) request['limits'] = normalizeLimits(request['limits'], notes);
  normalizeSchemas(request, notes);
  return request;
}

/** Files may contain numbers that JSON lacks (`.inf` of YAML, 1e999), and JSON text would make null of them. */
function hasFiniteNumbers(value: Json): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(hasFiniteNumbers);
}

/** Opens `{"type": "function", "function": {…}}` and `{"tool": {…}}`, in which models know tools from their provider. */
function withoutEnvelope(value: JsonObject, notes: RequestNotes): JsonObject {
  for (const member of ['function', 'tool', 'request']) {
    const inner = value[member];
    if (!isJsonObject(inner) || typeof inner['name'] !== 'string' || value['name'] !== undefined) continue;
    const { [member]: _opened, type, ...others } = value;
    notes.warn(`the request was inside ${member}; it was taken out`);
    return { ...others, ...(type === undefined || type === 'function' ? {} : { type }), ...inner };
  }
  return value;
}

function normalizeName(request: JsonObject, notes: RequestNotes): void {
  const { name } = request;
  if (typeof name !== 'string' || TOOL_NAME.test(name)) return;
  const proposed = snakeCase(name);
  if (proposed === undefined) return;
  notes.warn(
    `the name ${JSON.stringify(name.slice(0, 70))} was written in snake_case: ${proposed}; call the tool by that`,
  );
  request['name'] = proposed;
}

function normalizeSchemas(request: JsonObject, notes: RequestNotes): void {
  const tests = Array.isArray(request['testCases']) ? request['testCases'].filter(isJsonObject) : [];
  const samples = (member: string): Json[] =>
    tests.flatMap((test) => (Object.hasOwn(test, member) ? [test[member] ?? null] : []));
  const sources = { inputSchema: samples('input'), outputSchema: samples('expectedOutput') };
  for (const member of ['inputSchema', 'outputSchema'] as const) {
    const schema = request[member];
    if (isJsonObject(schema)) request[member] = wrapped(schema, member, notes);
    else if (schema === undefined && sources[member].length > 0) {
      notes.warn(`${member} was missing; it was inferred from the test cases`);
      request[member] = inferSchema(sources[member]);
    } else if (schema === undefined && member === 'outputSchema') {
      notes.warn('outputSchema was missing; any output is allowed');
      request[member] = {};
    }
  }
}

/** Wraps properties that stand in place of a schema: `{topic: {type: "string"}}`, or `{topic: "string"}`. */
function wrapped(schema: JsonObject, member: string, notes: RequestNotes): JsonObject {
  const values = Object.values(schema);
  const typed = (value: Json): boolean => isJsonObject(value) && typeof value['type'] === 'string';
  if (values.length > 0 && values.every(typed) && !isJsonObject(schema['properties'])) {
    notes.warn(`${member} contained the properties themselves; they were put under properties`);
    return { type: 'object', properties: schema };
  }
  if (values.length > 0 && schema['type'] !== 'object' && values.every(isTypeName) && !isJsonSchemaType(schema)) {
    notes.warn(`${member} contained the types of the properties; they were written as a schema`);
    const properties = Object.fromEntries(Object.entries(schema).map(([name, type]) => [name, { type }]));
    return { type: 'object', properties };
  }
  if (isJsonObject(schema['properties']) && schema['type'] === undefined) return { type: 'object', ...schema };
  return schema;
}

const TYPE_NAMES: readonly Json[] = ['string', 'number', 'integer', 'boolean', 'object', 'array'];

function isTypeName(value: Json): boolean {
  return TYPE_NAMES.includes(value);
}

/** `{"type": "string"}` alone is a schema, not a property named type. */
function isJsonSchemaType(schema: JsonObject): boolean {
  return Object.keys(schema).length === 1 && schema['type'] !== undefined;
}
