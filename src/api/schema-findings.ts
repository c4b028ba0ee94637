import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { suggestName } from '../lib/suggest.ts';
import { printable } from '../lib/printable.ts';
import { type Json, member } from '../lib/json.ts';
import type { Finding, FieldPath, RuleName } from './findings.ts';
import { dottedPath } from './findings.ts';
import { KIND_SCHEMAS, type KindName } from './v1alpha1/kinds.ts';
import { Metadata } from './v1alpha1/metadata.ts';

/** An untrusted document could cause millions of findings. When a result has this many findings, there may be more that are not listed. */
export const MAX_FINDINGS = 100;

/** The source text of the scalar at a path, if the text is known. */
export type SourceTextOf = (path: FieldPath) => string | undefined;

/** Checks one object of a kind against its schema. Findings are in the order of the schema validation. */
export type KindSchemaCheck = (kind: KindName, object: Json, source: SourceTextOf) => Finding[];

/** Compiles the schema of each kind on first use. */
export function createKindSchemaCheck(): KindSchemaCheck {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strict: false,
    validateSchema: false,
    validateFormats: false,
    logger: false,
  });
  ajv.removeKeyword('uniqueItems').addKeyword({ keyword: 'uniqueItems', type: 'array', validate: hasUniqueScalars });
  const compiled = new Map<KindName, ValidateFunction>();
  return (kind, object, source) => {
    const schemas = KIND_SCHEMAS.find((candidate) => candidate.kind === kind);
    if (schemas === undefined) throw new TypeError(`no schema of kind ${kind}`);
    let validate = compiled.get(kind);
    if (validate === undefined) {
      validate = ajv.compile(rootSchema(schemas.spec));
      compiled.set(kind, validate);
    }
    if (validate(object)) return [];
    return (validate.errors ?? [])
      .slice(0, MAX_FINDINGS)
      .map((error) => findingOf(error, object, source, schemas.spec));
  };
}

/** Replaces the quadratic check of the validator. All sets contain only scalars; the type check reports other items. */
function hasUniqueScalars(unique: boolean, items: readonly unknown[]): boolean {
  if (!unique) return true;
  const scalars = items.filter((item) => typeof item !== 'object');
  return new Set(scalars).size === scalars.length;
}

function rootSchema(spec: object): object {
  return {
    type: 'object',
    properties: { apiVersion: {}, kind: {}, metadata: Metadata, spec, status: { type: 'object' } },
    required: ['metadata', 'spec'],
    additionalProperties: false,
  };
}

type Describe = (error: ErrorObject, path: FieldPath, source: SourceTextOf, spec: object) => Omit<Finding, 'path'>;

function findingOf(error: ErrorObject, object: Json, source: SourceTextOf, spec: object): Finding {
  const path = pathOf(error, object);
  const describe = DESCRIPTIONS[error.keyword] ?? describeOther;
  return { path, ...describe(error, path, source, spec) };
}

function pathOf(error: ErrorObject, object: Json): FieldPath {
  const path: (string | number)[] = [];
  let value: Json | undefined = object;
  for (const part of error.instancePath.split('/').slice(1)) {
    const segment = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) {
      path.push(Number(segment));
      value = value[Number(segment)];
    } else {
      path.push(segment);
      value = member(value, segment);
    }
  }
  const { additionalProperty, missingProperty } = error.params as Record<string, unknown>;
  const last = additionalProperty ?? missingProperty;
  if (typeof last === 'string') path.push(last);
  return path;
}

const DESCRIPTIONS: Readonly<Record<string, Describe>> = {
  additionalProperties: describeUnknown,
  required: (_error, path, _source) => ({
    rule: 'required',
    message: `${dottedPath(path)} is missing`,
    fix: `add ${String(path.at(-1))}${example(_error)}`,
  }),
  type: describeType,
  enum: describeEnum,
  pattern: (error, path) => ({
    rule: 'pattern',
    message: `${dottedPath(path)} does not allow ${shown(error.data)}`,
    fix: descriptionOf(error),
  }),
  minLength: (error, path) => describeBound(error, path, 'length', 'characters at least', 'is empty or too short'),
  maxLength: (error, path) => describeBound(error, path, 'length', 'characters at most', 'is too long'),
  minItems: (error, path) => describeBound(error, path, 'items', 'items at least', 'has too few items'),
  maxItems: (error, path) => describeBound(error, path, 'items', 'items at most', 'has too many items'),
  maxProperties: (error, path) => describeBound(error, path, 'items', 'members at most', 'has too many members'),
  minimum: (error, path) => describeBound(error, path, 'range', 'at least', `is ${shown(error.data)}, too small`),
  maximum: (error, path) => describeBound(error, path, 'range', 'at most', `is ${shown(error.data)}, too large`),
  uniqueItems: (_error, path) => ({
    rule: 'duplicate-item',
    message: `${dottedPath(path)} contains the same item twice`,
    fix: 'keep one of them',
  }),
};

function describeOther(error: ErrorObject, path: FieldPath): Omit<Finding, 'path'> {
  return {
    rule: 'schema',
    message: `${dottedPath(path)} ${error.message ?? 'is invalid'}`,
    fix: descriptionOf(error),
  };
}

function describeBound(error: ErrorObject, path: FieldPath, rule: RuleName, unit: string, what: string) {
  const { limit } = error.params as { limit?: unknown };
  return { rule, message: `${dottedPath(path)} ${what}`, fix: `${unit} ${String(limit)}` };
}

function describeUnknown(
  error: ErrorObject,
  path: FieldPath,
  _source: SourceTextOf,
  spec: object,
): Omit<Finding, 'path'> {
  const unknown = String(path.at(-1));
  const known = Object.keys((error.parentSchema as { properties?: object } | undefined)?.properties ?? {});
  const message = `${dottedPath(path)} is not a field of ${dottedPath(path.slice(0, -1)) || 'the object'}`;
  const near = suggestName(unknown, known);
  if (near !== undefined) return { rule: 'unknown-field', message, fix: `did you mean "${near}"?` };
  const elsewhere = whereInSchema(spec, unknown, ['spec']);
  if (elsewhere !== undefined) return { rule: 'unknown-field', message, fix: `did you mean ${dottedPath(elsewhere)}?` };
  const list = known.length === 0 ? 'remove it' : `known fields: ${known.join(', ')}`;
  return { rule: 'unknown-field', message, fix: list };
}

/** The path of a field with this name elsewhere in the schema: a common mistake is wrong indentation. */
function whereInSchema(schema: object, name: string, path: FieldPath): FieldPath | undefined {
  const properties = (schema as { properties?: Record<string, object> }).properties ?? {};
  if (Object.hasOwn(properties, name)) return [...path, name];
  for (const [key, child] of Object.entries(properties)) {
    const found = whereInSchema(child, name, [...path, key]);
    if (found !== undefined) return found;
  }
  return undefined;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  object: 'a map',
  array: 'a list',
};

function describeType(error: ErrorObject, path: FieldPath, source: SourceTextOf): Omit<Finding, 'path'> {
  const wanted = String((error.params as { type?: unknown }).type);
  const field = dottedPath(path);
  const message = `${field} must be ${TYPE_NAMES[wanted] ?? wanted}, not ${shown(error.data)}`;
  return { rule: 'type', message, fix: typeFix(wanted, error, String(path.at(-1)), source(path)) };
}

function typeFix(wanted: string, error: ErrorObject, name: string, written: string | undefined): string {
  const value: unknown = error.data;
  if (value === null) return `give ${name} a value, or remove the line`;
  if (wanted === 'string' && (typeof value === 'number' || typeof value === 'boolean')) {
    const text = written ?? String(value);
    if (!fitsPattern(text, error)) return descriptionOf(error);
    return `write it in quotes: ${name}: "${printable(text, 40)}"`;
  }
  if (wanted === 'integer') return integerFix(value, name);
  if (wanted === 'boolean') return `write ${name}: true or ${name}: false, without quotes`;
  if (wanted === 'array' && typeof value !== 'object') return `write it as a list: ${name}: [${shown(value)}]`;
  return `give ${name} ${TYPE_NAMES[wanted] ?? wanted}. ${descriptionOf(error)}`.trim();
}

/** The patterns come from the Temper schemas only, and match in linear time. */
function fitsPattern(text: string, error: ErrorObject): boolean {
  const { pattern } = (error.parentSchema ?? {}) as { pattern?: unknown };
  return typeof pattern !== 'string' || new RegExp(pattern).test(text);
}

const SCALES: Readonly<Record<string, number>> = { '': 1, k: 1e3, K: 1e3, m: 1e6, M: 1e6 };

/** Suggests 100000 for `"100k"`. */
function integerFix(value: unknown, name: string): string {
  const parts = typeof value === 'string' ? /^(\d{1,9})([kKmM]?)$/.exec(value) : null;
  const meant = parts === null ? undefined : Number(parts[1]) * (SCALES[parts[2] ?? ''] ?? 1);
  if (meant !== undefined) return `write the digits without quotes or suffix: ${name}: ${meant}`;
  if (typeof value === 'number') return `write an integer: ${name}: ${Math.round(value)}`;
  return `write the digits without quotes or suffix, e.g. ${name}: 100000`;
}

function describeEnum(error: ErrorObject, path: FieldPath): Omit<Finding, 'path'> {
  const { allowedValues } = error.params as { allowedValues?: unknown[] };
  const allowed = (allowedValues ?? []).map(String);
  const message = `${dottedPath(path)} does not allow ${shown(error.data)}`;
  const list = `one of ${allowed.join(', ')}`;
  if (typeof error.data !== 'string') return { rule: 'enum', message, fix: list };
  const near = suggestName(error.data, allowed);
  return { rule: 'enum', message, fix: near === undefined ? list : `did you mean ${near}? ${list}` };
}

/** Describes a valid value: the form of the type if it has one, otherwise the description of the field. */
function descriptionOf(error: ErrorObject): string {
  const { description, ...schema } = (error.parentSchema ?? {}) as Record<string, unknown>;
  const form = schema['x-temper-form'];
  if (typeof form === 'string') return `write ${form}`;
  return typeof description === 'string' ? description : 'see the reference page of the kind';
}

function example(error: ErrorObject): string {
  const name = String((error.params as { missingProperty?: unknown }).missingProperty);
  const properties = (error.parentSchema as { properties?: Record<string, { description?: string }> }).properties;
  const description = properties?.[name]?.description;
  return description === undefined ? '' : `: ${description}`;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `the string "${printable(value, 60)}"`;
  if (value === null) return 'null';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? 'a list' : 'a map';
}
