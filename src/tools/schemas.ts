import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { canonicalJson } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { jsonDepth, type Json, type JsonObject } from '../lib/json.ts';
import { costOf, MAXIMUM_VALUE_DEPTH } from './schema-cost.ts';
import { SCHEMA_FORMATS } from './schema-formats.ts';
import { compilePattern, PATTERN_BUDGET, PatternBudgetError } from './schema-patterns.ts';
import { readSchema, type SchemaTree, type SchemaViolation } from './schema-tree.ts';

/** Answers with the first few violations, in words; empty means valid. Its work is bounded for any value. */
export type SchemaCheck = (value: Json) => string[];

/** Compiles schemas of any origin and keeps the compiled ones. */
export interface SchemaCompiler {
  /** Throws TEMPER_FORGE_SCHEMA when the schema is malformed or unsafe; unknown keywords are ignored. */
  check(schema: JsonObject): SchemaCheck;
}

const MAXIMUM_BYTES = 32_768;
/** Of the JSON text; every subschema takes up to three levels of it. */
const MAXIMUM_NESTING = 128;
const MAXIMUM_WORK = 200_000_000;
const MAXIMUM_MESSAGES = 8;
const KEPT = 500;

/**
 * What is wrong with a schema that somebody else wrote, `what` naming it in the paths (`inputSchema`).
 * A schema without violations compiles, and validates any value in bounded time.
 */
export function vetSchema(schema: Json, what: string): SchemaViolation[] {
  return vet(schema, what).violations;
}

interface Vetted {
  tree?: SchemaTree;
  workPerPlace: number;
  violations: SchemaViolation[];
}

function vet(schema: Json, what: string): Vetted {
  const oversized = tooLarge(schema);
  if (oversized !== undefined) {
    return { workPerPlace: 0, violations: [{ problem: 'unsafe', path: what, message: oversized }] };
  }
  const tree = readSchema(schema, what);
  if (tree.violations.some(isFatal)) return { tree, workPerPlace: 0, violations: tree.violations };
  const cost = costOf(tree);
  return { tree, workPerPlace: cost.workPerPlace, violations: [...tree.violations, ...cost.violations] };
}

function tooLarge(schema: Json): string | undefined {
  if (jsonDepth(schema, MAXIMUM_NESTING) >= MAXIMUM_NESTING) return 'the schema nests too deep; flatten it';
  const size = JSON.stringify(schema).length;
  if (size > MAXIMUM_BYTES) return `a schema has at most ${MAXIMUM_BYTES} characters, this one ${size}; shorten it`;
  return undefined;
}

function isFatal(violation: SchemaViolation): boolean {
  return violation.problem !== 'unknown-keyword';
}

/** Compiles one schema. Throws TEMPER_FORGE_SCHEMA for one that vetSchema finds malformed or unsafe. */
export function compileSchema(schema: JsonObject): SchemaCheck {
  const { tree, workPerPlace, violations } = vet(schema, 'schema');
  const fatal = violations.filter(isFatal);
  if (tree === undefined || fatal.length > 0) {
    throw new TemperError('TEMPER_FORGE_SCHEMA', fatal.map(({ path, message }) => `${path}: ${message}`).join('; '));
  }
  return boundedCheck(tree.clean, workPerPlace);
}

export function createSchemaCompiler(): SchemaCompiler {
  const kept = new Map<string, SchemaCheck>();
  return {
    check(schema) {
      const oversized = tooLarge(schema);
      if (oversized !== undefined) throw new TemperError('TEMPER_FORGE_SCHEMA', oversized);
      const key = JSON.stringify(schema);
      const found = kept.get(key) ?? compileSchema(schema);
      kept.delete(key);
      kept.set(key, found);
      const oldest = kept.keys().next().value;
      if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest);
      return found;
    },
  };
}

function boundedCheck(clean: Json, workPerPlace: number): SchemaCheck {
  let spent = 0;
  const spend = (cost: number): void => {
    spent += cost;
    if (spent > PATTERN_BUDGET) throw new PatternBudgetError();
  };
  const first = compileWith(clean, spend, false);
  let every: ValidateFunction | undefined;
  return (value) => {
    const places = countPlaces(value);
    if (jsonDepth(value, MAXIMUM_VALUE_DEPTH) >= MAXIMUM_VALUE_DEPTH)
      return ['the value nests too deep to be validated'];
    if (places * workPerPlace > MAXIMUM_WORK) return ['the value is too large to be validated against this schema'];
    spent = 0;
    try {
      if (first(value)) return [];
      if (places * workPerPlace > MAXIMUM_WORK / 1_000) return messages(first.errors ?? []);
      every ??= compileWith(clean, spend, true);
      every(value);
      return messages(every.errors ?? first.errors ?? []);
    } catch (error) {
      if (error instanceof PatternBudgetError) return ['the text is too long to be matched against the patterns'];
      if (error instanceof RangeError) return ['the value nests too deep, or holds text that is not Unicode'];
      throw error;
    }
  };
}

/** A validator of its own for each schema: nothing of one schema stays behind in another's. */
function compileWith(clean: Json, spend: (cost: number) => void, allErrors: boolean): ValidateFunction {
  const engine = Object.assign((pattern: string) => compilePattern(pattern, spend), { code: 'compilePattern' });
  const ajv = new Ajv2020({
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    strict: false,
    allErrors,
    inlineRefs: false,
    ownProperties: true,
    logger: false,
    formats: Object.fromEntries([...SCHEMA_FORMATS].map(([name, test]) => [name, test])),
    code: { regExp: engine },
  });
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not hold an item twice' },
    // The library compares every pair; comparing canonical texts takes linear time.
    validate: (wanted: boolean, items: Json[]) => !wanted || new Set(items.map(canonicalJson)).size === items.length,
  });
  try {
    return ajv.compile(clean as JsonObject);
  } catch (error) {
    throw new TemperError('TEMPER_FORGE_SCHEMA', 'the schema cannot be compiled; simplify it', { cause: error });
  }
}

function countPlaces(value: Json): number {
  let places = 0;
  const left: Json[] = [value];
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    places += 1;
    if (typeof item !== 'object' || item === null) continue;
    for (const child of Array.isArray(item) ? item : Object.values(item)) left.push(child);
  }
  return places;
}

function messages(errors: readonly ErrorObject[]): string[] {
  const said = new Set<string>();
  for (const error of errors) {
    if (said.size < MAXIMUM_MESSAGES) said.add(describe(error));
  }
  return said.size === 0 ? ['the value breaks the schema'] : [...said];
}

function describe(error: ErrorObject): string {
  const place = error.instancePath === '' ? 'the value' : error.instancePath.slice(1).replaceAll('/', '.');
  const rule = error.message ?? 'breaks the schema';
  const params = error.params as Record<string, unknown>;
  const detail =
    params['additionalProperty'] ?? params['unevaluatedProperty'] ?? params['propertyName'] ?? params['allowedValues'];
  const named = detail === undefined ? '' : ` (${JSON.stringify(detail)})`;
  return printable(`${place} ${rule}${named}`, 300);
}
