import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { Check } from 'typebox/value';
import { parse } from 'yaml';
import { KIND_SCHEMAS } from '../v1alpha1/kinds.ts';
import { CONDITIONS } from '../v1alpha1/reasons.ts';
import { rootSchema } from './crd.ts';
import { DEFINITIONS } from './definitions.ts';
import { generatedFiles } from './files.ts';
import { type Structural, structural } from './structural.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

describe('the generated files', () => {
  it('the generated files match the committed files', async () => {
    for (const [path, text] of generatedFiles()) {
      const committed = await readFile(resolve(ROOT, path), 'utf8').catch(() => '');
      assert.ok(committed === text, `${path} is out of date: run make generate`);
    }
  });

  it('the generated files include every file in crds', async () => {
    const expected = DEFINITIONS.map(({ plural }) => `${plural}.yaml`).sort();
    assert.deepEqual((await readdir(resolve(ROOT, 'crds'))).sort(), expected);
  });

  it('the generated files are deterministic and contain no YAML anchors', () => {
    const again = generatedFiles();
    for (const [path, text] of generatedFiles()) {
      assert.equal(text, again.get(path));
      if (path.startsWith('crds/')) assert.doesNotMatch(text, /: [&*]a\d/);
    }
  });
});

describe('each CRD', () => {
  for (const definition of DEFINITIONS) {
    const file = (): { spec: { versions: [{ schema: { openAPIV3Schema: Structural } }] } & Structural } =>
      parse(generatedFiles().get(`crds/${definition.plural}.yaml`) ?? '');

    it(`the CRD of ${definition.kind} has a structural schema`, () => {
      const faults: string[] = [];
      const root = file().spec.versions[0].schema.openAPIV3Schema;
      // The API server adds the default of the status only when it reads an object; a default in the spec would change what users wrote.
      delete childOf(root, 'status')['default'];
      checkStructural(root, '', faults);
      assert.deepEqual(faults, []);
    });

    it(`the CRD of ${definition.kind} has bounds on every value that its CEL rules read`, () => {
      const root = file().spec.versions[0].schema.openAPIV3Schema;
      const faults: string[] = [];
      for (const { at } of definition.rules.filter((rule) => rule.at.length > 0)) {
        const below = at.reduce<Structural>((schema, segment) => childOf(schema, segment), root);
        checkBounded(below, at.join('.'), faults);
      }
      assert.deepEqual(faults, []);
    });

    it(`the CRD of ${definition.kind} has a default status that its own schema allows, or none`, () => {
      const { defaultStatus } = definition;
      const status = KIND_SCHEMAS.find(({ kind }) => kind === definition.kind)?.status;
      assert.ok(status !== undefined);
      assert.ok(defaultStatus === undefined || Check(status, defaultStatus));
      // Go programs read YAML 1.1, in which a plain time is not a string.
      const text = generatedFiles().get(`crds/${definition.plural}.yaml`) ?? '';
      const read = parse(text, { schema: 'yaml-1.1' }) as ReturnType<typeof file>;
      assert.deepEqual(childOf(read.spec.versions[0].schema.openAPIV3Schema, 'status')['default'], defaultStatus);
    });

    it(`the CRD of ${definition.kind} has printer columns only for statuses that a component writes`, () => {
      const known = CONDITIONS[definition.kind].map(({ type }) => type);
      const shown = definition.columns.flatMap(({ jsonPath }) => /@\.type=="(\w+)"/.exec(jsonPath)?.[1] ?? []);
      assert.deepEqual(
        shown.filter((type) => !known.includes(type)),
        [],
      );
      const fields = definition.columns.filter(({ jsonPath }) => /^\.status\.(?!conditions\[)/.test(jsonPath));
      assert.ok(
        fields.length === 0 ||
          ['Agent', 'TrustPolicy', 'EmergentTool', 'Capability', 'ApprovalRequest'].includes(definition.kind),
        'the operator writes no other',
      );
    });

    it(`the CRD of ${definition.kind} has printer columns and selectable fields only for existing fields`, () => {
      const root = file().spec.versions[0].schema.openAPIV3Schema;
      const paths = [...definition.columns.map(({ jsonPath }) => jsonPath), ...definition.selectable];
      for (const path of paths.filter((text) => !text.startsWith('.metadata') && !text.includes('['))) {
        const found = path
          .split('.')
          .slice(1)
          .reduce<Structural>((schema, segment) => childOf(schema, segment), root);
        assert.ok(found['type'] !== undefined, path);
      }
    });
  }

  it('each CRD has a unique kind, plural and short name', () => {
    for (const key of ['kind', 'plural', 'shortName'] as const) {
      assert.equal(new Set(DEFINITIONS.map((definition) => definition[key])).size, KIND_SCHEMAS.length);
    }
  });

  it('the CRDs make the spec of EmergentTool, ApprovalRequest and Approval immutable', () => {
    for (const kind of ['EmergentTool', 'Approval', 'ApprovalRequest']) {
      const definition = DEFINITIONS.find((candidate) => candidate.kind === kind);
      const schemas = KIND_SCHEMAS.find((candidate) => candidate.kind === kind);
      assert.ok(definition !== undefined && schemas !== undefined);
      const root = rootSchema(definition, schemas);
      const rules = root['x-kubernetes-validations'] as { rule: string }[];
      assert.ok(rules.some(({ rule }) => rule === 'self.spec == oldSelf.spec'));
      assert.deepEqual(root['required'], ['spec']);
    }
  });
});

describe('the structural form', () => {
  it('the structural form of a schema that an API server would reject is an error', () => {
    assert.throws(() => structural({ anyOf: [{ type: 'string' }, { type: 'object' }] }), /type is missing/);
    assert.throws(() => structural({ type: 'object', $ref: '#/x' }), /\$ref has no structural form/);
    assert.throws(() => structural({ type: 'object', properties: { a: {} } }), /spec\.a: the type is missing/);
  });

  it('the structural form turns constants into enums, translates maps, and drops defaults', () => {
    assert.deepEqual(structural({ const: 'x' }), { type: 'string', enum: ['x'] });
    assert.deepEqual(structural({ type: 'boolean', default: false }), { type: 'boolean' });
    assert.deepEqual(structural({ type: 'object', patternProperties: { '^.*$': { type: 'string' } } }), {
      type: 'object',
      additionalProperties: { type: 'string' },
    });
  });
});

const FORBIDDEN = [
  '$id',
  '$schema',
  '$ref',
  'definitions',
  '$defs',
  'const',
  'patternProperties',
  'uniqueItems',
  'default',
  'if',
  'oneOf',
];

function checkStructural(schema: Structural, path: string, faults: string[]): void {
  const keywords = Object.keys(schema);
  const wrong = keywords.filter((keyword) => FORBIDDEN.includes(keyword) || keyword.startsWith('x-temper'));
  faults.push(
    ...wrong.map((keyword) => `${path}: ${keyword}`),
    ...shapeFaults(schema).map((fault) => `${path}: ${fault}`),
  );
  const { properties, additionalProperties, items } = schema;
  for (const [name, child] of Object.entries((properties ?? {}) as Record<string, Structural>)) {
    checkStructural(child, `${path}.${name}`, faults);
  }
  if (items !== undefined) checkStructural(items as Structural, `${path}[]`, faults);
  if (typeof additionalProperties === 'object')
    checkStructural(additionalProperties as Structural, `${path}{}`, faults);
}

function shapeFaults(schema: Structural): string[] {
  const { type, properties, additionalProperties, items } = schema;
  const listType = schema['x-kubernetes-list-type'];
  return [
    typeof type === 'string' ? '' : 'no type',
    properties === undefined || additionalProperties === undefined ? '' : 'properties and a map',
    typeof additionalProperties === 'boolean' ? 'open or closed map' : '',
    type === 'array' && items === undefined ? 'no items' : '',
    listType === 'map' && !Array.isArray(schema['x-kubernetes-list-map-keys']) ? 'no map keys' : '',
  ].filter((fault) => fault !== '');
}

function childOf(schema: Structural, segment: string): Structural {
  const next = segment === '[]' ? schema['items'] : (schema['properties'] as Structural | undefined)?.[segment];
  assert.ok(next !== undefined, `no ${segment}`);
  return next as Structural;
}

/** The API server estimates the cost of a CEL rule from the bounds of the values that it reads, and rejects a rule without bounds. */
function checkBounded(schema: Structural, path: string, faults: string[]): void {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return;
  if (schema['type'] === 'string' && schema['enum'] === undefined && schema['maxLength'] === undefined)
    faults.push(path);
  if (schema['type'] === 'array' && schema['maxItems'] === undefined) faults.push(path);
  for (const [name, child] of Object.entries((schema['properties'] ?? {}) as Record<string, Structural>)) {
    checkBounded(child, `${path}.${name}`, faults);
  }
  if (schema['items'] !== undefined) checkBounded(schema['items'] as Structural, `${path}[]`, faults);
}
