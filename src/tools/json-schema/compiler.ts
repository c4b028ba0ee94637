import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { jsonDepth, type Json, type JsonObject } from '../../lib/json.ts';
import { costOf, MAX_VALUE_DEPTH } from './cost.ts';
import { addCountedKeywords, countedFormats, withVisitCounts } from './counted-keywords.ts';
import { compilePattern } from './patterns.ts';
import { readSchema, type SchemaTree, type SchemaViolation } from './tree.ts';
import { WorkLimitError, WorkMeter } from './work.ts';

/** Returns messages for the first few violations; an empty list means valid. The work is bounded for any value. */
export type ValueCheck = (value: Json) => string[];

/** Compiles schemas, also untrusted ones, and caches them. */
export interface SchemaCompiler {
  /** Returns the check for a schema. Throws TEMPER_FORGE_SCHEMA when the schema is malformed or unsafe; ignores unknown keywords. */
  check(schema: JsonObject): ValueCheck;
  /** `validateSchema`, which keeps the compiled schema for `check`. */
  validate(schema: Json, what: string): SchemaViolation[];
}

const MAX_CHARACTERS = 32_768;
/** Nesting of the JSON text; every subschema takes up to three levels. */
const MAX_NESTING = 128;
const MAX_MESSAGES = 8;
/** Work on a value that is already refused, to name more than its first violation; each violation takes memory. */
const MAX_UNITS_FOR_MESSAGES = 300_000;
const CACHE_SIZE = 500;

/**
 * Returns the violations of an untrusted schema. `what` is its name in the paths of the violations (`inputSchema`).
 * A schema without violations compiles, and validates any value in bounded time.
 */
export function validateSchema(schema: Json, what: string): SchemaViolation[] {
  return validateWith(schema, what, (clean) => compileWith(clean, new WorkMeter(), false));
}

/** `compile` throws TEMPER_FORGE_SCHEMA for a schema that the validator refuses. */
function validateWith(schema: Json, what: string, compile: (clean: Json) => unknown): SchemaViolation[] {
  const { tree, violations } = readUntrusted(schema, what);
  if (tree === undefined || violations.some(isFatal)) return violations;
  return [...violations, ...compileViolations(() => compile(tree.clean), what)];
}

/** The tree of a schema, and all violations that do not need the validator. */
function readUntrusted(schema: Json, what: string): { tree?: SchemaTree; violations: SchemaViolation[] } {
  const oversized = tooLarge(schema);
  if (oversized !== undefined) {
    return { violations: [{ problem: 'unsafe', path: what, message: oversized }] };
  }
  const tree = readSchema(schema, what);
  const violations = tree.violations.some(isFatal) ? tree.violations : [...tree.violations, ...costOf(tree)];
  return { tree, violations };
}

/** What the validator itself refuses, so that a schema without violations always compiles. */
function compileViolations(compile: () => unknown, what: string): SchemaViolation[] {
  try {
    compile();
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

/** Compiles one schema. Throws TEMPER_FORGE_SCHEMA for one that is malformed or unsafe. */
export function compileSchema(schema: JsonObject): ValueCheck {
  const { tree, violations } = readUntrusted(schema, 'schema');
  const fatal = violations.filter(isFatal);
  if (tree === undefined || fatal.length > 0) {
    throw new TemperError('TEMPER_FORGE_SCHEMA', fatal.map(({ path, message }) => `${path}: ${message}`).join('; '));
  }
  return boundedCheck(tree.clean);
}

export function createSchemaCompiler(): SchemaCompiler {
  const cache = new LRUCache<string, ValueCheck>(entries(CACHE_SIZE));
  const cached = (schema: Json, compile: () => ValueCheck): ValueCheck => {
    const key = JSON.stringify(schema);
    const found = cache.get(key) ?? compile();
    cache.set(key, found);
    return found;
  };
  return {
    check(schema) {
      const oversized = tooLarge(schema);
      if (oversized !== undefined) throw new TemperError('TEMPER_FORGE_SCHEMA', oversized);
      return cached(schema, () => compileSchema(schema));
    },
    validate: (schema, what) => validateWith(schema, what, (clean) => cached(schema, () => boundedCheck(clean))),
  };
}

function boundedCheck(clean: Json): ValueCheck {
  const meter = new WorkMeter();
  const first = compileWith(clean, meter, false);
  let every: ValidateFunction | undefined;
  return (value) => {
    if (jsonDepth(value, MAX_VALUE_DEPTH) >= MAX_VALUE_DEPTH) return ['the value is nested too deeply to be validated'];
    meter.start();
    try {
      if (first(value)) return [];
      const found = messages(first.errors ?? []);
      every ??= compileWith(clean, meter, true);
      meter.start(MAX_UNITS_FOR_MESSAGES);
      return everyMessage(every, value) ?? found;
    } catch (error) {
      if (error instanceof WorkLimitError) {
        return ['the value takes too much work to be validated against this schema; make it smaller'];
      }
      if (error instanceof RangeError) return ['the value is nested too deeply, or contains invalid Unicode'];
      throw error;
    }
  };
}

/** Messages for all violations; undefined when collecting them takes too much work. */
function everyMessage(every: ValidateFunction, value: Json): string[] | undefined {
  try {
    return every(value) ? undefined : messages(every.errors ?? []);
  } catch (error) {
    if (error instanceof WorkLimitError) return undefined;
    throw error;
  }
}

/** Each schema has its own validator instance, so that no state of one schema leaks into another. */
function compileWith(clean: Json, meter: WorkMeter, allErrors: boolean): ValidateFunction {
  const spend = (units: number): void => meter.spend(units);
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
    formats: countedFormats(meter),
    code: { regExp: engine, optimize: false },
  });
  addCountedKeywords(ajv, meter);
  try {
    return ajv.compile(withVisitCounts(clean) as JsonObject);
  } catch (error) {
    const reason = printable(messageOf(error), 120);
    throw new TemperError('TEMPER_FORGE_SCHEMA', `the schema cannot be compiled (${reason}); simplify it`, {
      cause: error,
    });
  }
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
