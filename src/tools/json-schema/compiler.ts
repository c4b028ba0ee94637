import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { canonicalJson } from '../../lib/canonical.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { jsonDepth, type Json, type JsonObject } from '../../lib/json.ts';
import { costOf, MAX_VALUE_DEPTH } from './cost.ts';
import { SCHEMA_FORMATS } from './formats.ts';
import { compilePattern, MAX_PATTERN_STEPS, PatternBudgetError } from './patterns.ts';
import { readSchema, type SchemaTree, type SchemaViolation } from './tree.ts';

/** Returns messages for the first few violations; an empty list means valid. The work is bounded for any value. */
export type ValueCheck = (value: Json) => string[];

/** Compiles schemas, also untrusted ones, and caches them. */
export interface SchemaCompiler {
  /** Returns the check for a schema. Throws TEMPER_FORGE_SCHEMA when the schema is malformed or unsafe; ignores unknown keywords. */
  check(schema: JsonObject): ValueCheck;
}

const MAX_CHARACTERS = 32_768;
/** Nesting of the JSON text; every subschema takes up to three levels. */
const MAX_NESTING = 128;
const MAX_WORK = 200_000_000;
const MAX_MESSAGES = 8;
const CACHE_SIZE = 500;

/**
 * Returns the violations of an untrusted schema. `what` is its name in the paths of the violations (`inputSchema`).
 * A schema without violations compiles, and validates any value in bounded time.
 */
export function validateSchema(schema: Json, what: string): SchemaViolation[] {
  return validate(schema, what).violations;
}

interface ValidatedSchema {
  tree?: SchemaTree;
  workPerPlace: number;
  violations: SchemaViolation[];
}

function validate(schema: Json, what: string): ValidatedSchema {
  const oversized = tooLarge(schema);
  if (oversized !== undefined) {
    return { workPerPlace: 0, violations: [{ problem: 'unsafe', path: what, message: oversized }] };
  }
  const tree = readSchema(schema, what);
  if (tree.violations.some(isFatal)) return { tree, workPerPlace: 0, violations: tree.violations };
  const cost = costOf(tree);
  const violations = [...tree.violations, ...cost.violations];
  if (!violations.some(isFatal)) violations.push(...compileViolations(tree.clean, what));
  return { tree, workPerPlace: cost.workPerLocation, violations };
}

/** What the validator itself refuses, so that a schema without violations always compiles. */
function compileViolations(clean: Json, what: string): SchemaViolation[] {
  try {
    compileWith(clean, () => undefined, false);
    return [];
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_FORGE_SCHEMA')) throw error;
    return [{ problem: 'invalid', path: what, message: error.message }];
  }
}

function tooLarge(schema: Json): string | undefined {
  if (jsonDepth(schema, MAX_NESTING) >= MAX_NESTING) return 'the schema is nested too deeply; flatten it';
  const size = JSON.stringify(schema).length;
  if (size > MAX_CHARACTERS)
    return `a schema may have at most ${MAX_CHARACTERS} characters, this one has ${size}; shorten it`;
  return undefined;
}

function isFatal(violation: SchemaViolation): boolean {
  return violation.problem !== 'unknown-keyword';
}

/** Compiles one schema. Throws TEMPER_FORGE_SCHEMA for one that vetSchema finds malformed or unsafe. */
export function compileSchema(schema: JsonObject): ValueCheck {
  const { tree, workPerPlace, violations } = validate(schema, 'schema');
  const fatal = violations.filter(isFatal);
  if (tree === undefined || fatal.length > 0) {
    throw new TemperError('TEMPER_FORGE_SCHEMA', fatal.map(({ path, message }) => `${path}: ${message}`).join('; '));
  }
  return boundedCheck(tree.clean, workPerPlace);
}

export function createSchemaCompiler(): SchemaCompiler {
  const cache = new Map<string, ValueCheck>();
  return {
    check(schema) {
      const oversized = tooLarge(schema);
      if (oversized !== undefined) throw new TemperError('TEMPER_FORGE_SCHEMA', oversized);
      const key = JSON.stringify(schema);
      const found = cache.get(key) ?? compileSchema(schema);
      cache.delete(key);
      cache.set(key, found);
      const oldest = cache.keys().next().value;
      if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest);
      return found;
    },
  };
}

function boundedCheck(clean: Json, workPerPlace: number): ValueCheck {
  let spent = 0;
  const spend = (cost: number): void => {
    spent += cost;
    if (spent > MAX_PATTERN_STEPS) throw new PatternBudgetError();
  };
  const first = compileWith(clean, spend, false);
  let every: ValidateFunction | undefined;
  return (value) => {
    const locations = countLocations(value);
    if (jsonDepth(value, MAX_VALUE_DEPTH) >= MAX_VALUE_DEPTH) return ['the value is nested too deeply to be validated'];
    if (locations * workPerPlace > MAX_WORK) return ['the value is too large to be validated against this schema'];
    spent = 0;
    try {
      if (first(value)) return [];
      if (locations * workPerPlace > MAX_WORK / 1_000) return messages(first.errors ?? []);
      every ??= compileWith(clean, spend, true);
      every(value);
      return messages(every.errors ?? first.errors ?? []);
    } catch (error) {
      if (error instanceof PatternBudgetError) return ['the text is too long to be matched against the patterns'];
      if (error instanceof RangeError) return ['the value is nested too deeply, or contains invalid Unicode'];
      throw error;
    }
  };
}

/** Each schema has its own validator instance, so that no state of one schema leaks into another. */
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
    error: { message: 'must not contain duplicate items' },
    // The library compares every pair; comparing canonical texts takes linear time.
    validate: (wanted: boolean, items: Json[]) => !wanted || new Set(items.map(canonicalJson)).size === items.length,
  });
  try {
    return ajv.compile(clean as JsonObject);
  } catch (error) {
    const reason = printable(messageOf(error), 120);
    throw new TemperError('TEMPER_FORGE_SCHEMA', `the schema cannot be compiled (${reason}); simplify it`, {
      cause: error,
    });
  }
}

function countLocations(value: Json): number {
  let locations = 0;
  const stack: Json[] = [value];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    locations += 1;
    if (typeof item !== 'object' || item === null) continue;
    for (const child of Array.isArray(item) ? item : Object.values(item)) stack.push(child);
  }
  return locations;
}

function messages(errors: readonly ErrorObject[]): string[] {
  const unique = new Set<string>();
  for (const error of errors) {
    if (unique.size < MAX_MESSAGES) unique.add(describe(error));
  }
  return unique.size === 0 ? ['the value does not match the schema'] : [...unique];
}

function describe(error: ErrorObject): string {
  const location = error.instancePath === '' ? 'the value' : error.instancePath.slice(1).replaceAll('/', '.');
  const rule = error.message ?? 'does not match the schema';
  const params = error.params as Record<string, unknown>;
  const detail =
    params['additionalProperty'] ?? params['unevaluatedProperty'] ?? params['propertyName'] ?? params['allowedValues'];
  const named = detail === undefined ? '' : ` (${JSON.stringify(detail)})`;
  return printable(`${location} ${rule}${named}`, 300);
}
