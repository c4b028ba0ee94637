import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { before, describe, it } from 'node:test';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { type Json, isJsonObject } from '../lib/json.ts';
import { rootSchema } from './generate/crd.ts';
import { DEFINITIONS } from './generate/definitions.ts';
import { type ManifestLoader, createManifestLoader } from './manifests.ts';
import { KIND_SCHEMAS } from './v1alpha1/kinds.ts';
import { parseDocuments } from './yaml-documents.ts';

const SAMPLES = resolve(import.meta.dirname, '../../manifests/samples');

type Path = (string | number)[];

/** The path of every value inside a value, including the value itself. */
function placesOf(value: Json, path: Path = []): Path[] {
  const entries: [string | number, Json][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : isJsonObject(value)
      ? Object.entries(value)
      : [];
  return [path, ...entries.flatMap(([key, child]) => placesOf(child, [...path, key]))];
}

function parentOf(value: Json, path: Path): Json {
  return path.slice(0, -1).reduce<Json>((at, key) => (at as Record<string | number, Json>)[key] ?? null, value);
}

type Mutation =
  | { kind: 'replace'; value: Json }
  | { kind: 'remove' }
  | { kind: 'rename'; name: string }
  | { kind: 'add'; name: string; value: Json };

function mutated(original: Json, path: Path, mutation: Mutation): Json {
  const copy = structuredClone(original);
  if (path.length === 0) return mutation.kind === 'replace' ? mutation.value : copy;
  const parent = parentOf(copy, path) as Record<string | number, Json>;
  const key = path.at(-1) ?? '';
  const value = parent[key] ?? null;
  if (mutation.kind === 'replace') parent[key] = mutation.value;
  else if (mutation.kind === 'add') {
    if (isJsonObject(value)) Object.defineProperty(value, mutation.name, { value: mutation.value, enumerable: true });
  } else if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else {
    delete parent[key];
    if (mutation.kind === 'rename') parent[mutation.name] = value;
  }
  return copy;
}

const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
const anyValue = fc.oneof(
  anyJson,
  fc.constantFrom<Json>('', 'elevated', '../..', '**', -1, 1e308, null, [], {}, '9'.repeat(40)),
);
const anyMutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant('replace' as const), value: anyValue }),
  fc.record({ kind: fc.constant('remove' as const) }),
  fc.record({ kind: fc.constant('rename' as const), name: fc.string() }),
  fc.record({ kind: fc.constant('add' as const), name: fc.string({ minLength: 1 }), value: anyValue }),
);

describe('a sample with one random change', () => {
  const texts: string[] = [];
  const values: Json[] = [];
  let loader: ManifestLoader;
  const crds = new Map<string, ValidateFunction>();

  before(async () => {
    loader = createManifestLoader();
    for (const name of await readdir(SAMPLES)) texts.push(await readFile(join(SAMPLES, name), 'utf8'));
    for (const text of texts) values.push(...parseDocuments(text).documents.map(({ value }) => value));
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
    for (const definition of DEFINITIONS) {
      const schemas = KIND_SCHEMAS.find(({ kind }) => kind === definition.kind);
      assert.ok(schemas !== undefined);
      crds.set(definition.kind, ajv.compile(rootSchema(definition, schemas)));
    }
  });

  it('a sample with one random change is valid and accepted by the CRD schema, or every problem has a field, a rule and a fix', () => {
    let valid = 0;
    let refused = 0;
    fc.assert(
      fc.property(fc.nat(), fc.nat(), anyMutation, (sample, place, mutation) => {
        const original = values[sample % values.length] ?? null;
        const places = placesOf(original);
        const changed = mutated(original, places[place % places.length] ?? [], mutation);
        const problems = loader.validate(changed);
        for (const problem of problems) {
          assert.ok(problem.message !== '' && problem.fix !== '');
          assert.ok(problem.field !== '' || !isJsonObject(changed), JSON.stringify(problem));
        }
        if (problems.length > 0) refused += 1;
        else {
          valid += 1;
          const accepts = crds.get((changed as { kind: string }).kind);
          assert.ok(accepts?.(changed), JSON.stringify(accepts?.errors));
        }
      }),
      { numRuns: 1500 },
    );
    // The generator produced enough valid and enough invalid objects.
    assert.ok(valid > 50 && refused > 300, `${valid} valid, ${refused} refused`);
  });

  it('a sample with one random change is invalid with an additional member in a closed object', () => {
    for (const value of values) {
      const places = placesOf(value).filter(
        (path) => !path.join('.').includes('inputSchema') && !path.includes('labels'),
      );
      for (const path of places) {
        const at = path.reduce<Json>((found, key) => (found as Record<string | number, Json>)[key] ?? null, value);
        if (!isJsonObject(at)) continue;
        const problems = loader.validate(mutated(value, path, { kind: 'add', name: 'unknownMember', value: 1 }));
        if (path.length > 0)
          assert.ok(
            problems.some(({ rule }) => rule === 'unknown-field'),
            path.join('.'),
          );
      }
    }
  });

  it('a sample with one random change never makes the parser throw when characters are removed or inserted', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.nat(),
        fc.nat({ max: 20 }),
        fc.string({ unit: 'binary', maxLength: 8 }),
        (sample, at, cut, insert) => {
          const text = texts[sample % texts.length] ?? '';
          const from = at % (text.length + 1);
          const { documents, errors } = parseDocuments(text.slice(0, from) + insert + text.slice(from + cut));
          for (const { value } of documents) loader.validate(value);
          for (const { position } of errors) assert.ok(position.line >= 1 && position.column >= 1);
        },
      ),
      { numRuns: 600 },
    );
  });
});
