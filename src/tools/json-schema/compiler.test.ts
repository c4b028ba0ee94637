import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assert as assertProperty, jsonValue, property } from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { compileSchema, createSchemaCompiler, validateSchema } from './compiler.ts';

function nested(levels: number, wrap: (inner: Json) => Json, core: Json): Json {
  let value = core;
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
}

/** `$defs.a0` = two references to a1, and so on: 2^n visits from n lines. */
function fanOut(levels: number, combine: string): JsonObject {
  const defs: JsonObject = { [`a${levels}`]: { type: 'string' } };
  for (let level = 0; level < levels; level += 1) {
    const next = { $ref: `#/$defs/a${level + 1}` };
    defs[`a${level}`] = { [combine]: [next, next] };
  }
  return { $defs: defs, $ref: '#/$defs/a0' };
}

const doublingList = (keyword: string): JsonObject => ({
  $defs: { a: { type: 'array', items: { [keyword]: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] } } },
  $ref: '#/$defs/a',
});

/** Schemas that must be refused quickly. */
const ATTACKS: Record<string, Json> = {
  'a pattern with nested quantifiers and a look-ahead': { pattern: '^(?=(a+))+$' },
  'a pattern with a back-reference': { pattern: '^(a*)\\1$' },
  'a pattern that repeats a thousand times a thousand': { pattern: '((a{100}){100}){100}' },
  'a pattern of 300 characters': { pattern: 'a?'.repeat(150) },
  'patterns beyond the number allowed': { allOf: Array.from({ length: 60 }, (_, n) => ({ pattern: `a${n}` })) },
  'a pattern property that cannot be matched linearly': { patternProperties: { '(?<=a)b': {} } },
  'a reference over https': { $ref: 'https://example.com/schema.json' },
  'a reference to a file': { properties: { a: { $ref: 'file:///etc/passwd' } } },
  'a relative reference': { $ref: 'other.json#/$defs/a' },
  'a reference to a missing definition': { $ref: '#/$defs/missing' },
  'a reference to itself': { $ref: '#' },
  'two references in a circle': { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
  'a circle through allOf': { allOf: [{ anyOf: [{ $ref: '#' }] }] },
  'a circle through not': { not: { $ref: '#' } },
  'a circle that is never entered': { $defs: { a: { $ref: '#/$defs/a' } }, type: 'object' },
  'fan-out by allOf': fanOut(30, 'allOf'),
  'fan-out by oneOf': fanOut(40, 'oneOf'),
  'fan-out at each level of nested lists': doublingList('allOf'),
  'fan-out at each level under anyOf': doublingList('anyOf'),
  $data: { properties: { a: { minimum: { $data: '1/b' } } } },
  '$data as a keyword': { $data: '/a' },
  $dynamicRef: { $dynamicRef: '#meta' },
  $recursiveRef: { $recursiveRef: '#' },
  $anchor: { $anchor: 'x' },
  'an inner $id that moves the base of references': { properties: { a: { $id: 'https://example.com/', $ref: '#x' } } },
  'a member named __proto__': JSON.parse('{"properties":{"__proto__":{"type":"string"}}}') as Json,
  'a member named constructor': { properties: { constructor: { type: 'string' } } },
  'a definition named prototype': { $defs: { prototype: {} } },
  'a member name of ten thousand characters': { properties: { ['a'.repeat(10_000)]: {} } },
  '33 levels': nested(33, (inner) => ({ items: inner }), {}),
  'a hundred thousand levels': nested(100_000, (inner) => ({ not: inner }), {}),
  'a hundred thousand levels inside enum': { enum: [nested(100_000, (inner) => [inner], 1)] },
  'two thousand subschemas': { anyOf: Array.from({ length: 2_000 }, () => ({})) },
  'more text than allowed': { description: 'x'.repeat(40_000) },
  'an enum of six thousand values': { enum: Array.from({ length: 6_000 }, (_, n) => n) },
  'a type that is code': { type: 'string"); process.exit(); ("' },
  'a limit that is code': { maximum: '1); process.exit(' },
  'a limit that is not a number': { minLength: -1 },
  'required that is not a list': { required: true },
  'properties that are a list': { properties: [] },
  'a schema that is a number': 5,
  'a schema that is null': null,
};

describe('hostile schemas', () => {
  for (const [name, schema] of Object.entries(ATTACKS)) {
    it(`the schema check refuses ${name}`, () => {
      const violations = validateSchema(schema, 'inputSchema');
      assert.notEqual(violations.length, 0);
      for (const { path, message } of violations) assert.ok(path.length < 300 && message.length < 400, message);
      if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) {
        assert.throws(
          () => compileSchema(schema),
          (error) => isTemperError(error, 'TEMPER_FORGE_SCHEMA'),
        );
      }
    });
  }

  it('a pattern that would block the native engine for seconds runs quickly', () => {
    const check = compileSchema({ type: 'string', pattern: '^(a+)+$' });
    assert.deepEqual(check('a'.repeat(40)), []);
    assert.notEqual(check(`${'a'.repeat(40)}!`).length, 0);
  });

  const text = 'x'.repeat(524_288);
  const wide = Object.fromEntries(Array.from({ length: 40_000 }, (_, index) => [`k${index}`, 1]));
  const many = (schema: JsonObject, count = 200): JsonObject => ({
    allOf: Array.from({ length: count }, () => schema),
  });
  const items = (schema: JsonObject, count?: number): JsonObject => ({ items: many(schema, count) });
  /** Values whose validation took seconds to minutes, because a bound did not know what a keyword reads. */
  const COSTLY: Record<string, { schema: JsonObject; value: Json }> = {
    'the length of texts in turn': { schema: many({ items: { minLength: 1 } }, 200), value: [text, `${text}y`] },
    'the length of many names': {
      schema: many({ propertyNames: { maxLength: 600_000 } }),
      value: { [text]: 1, [`${text}y`]: 2 },
    },
    'a format of many texts': {
      schema: items({ format: 'uri' }, 100),
      value: Array.from({ length: 500 }, () => `http://${'ä.'.repeat(1_000)}`),
    },
    'the canonical text of long items': {
      schema: many({ uniqueItems: true }),
      value: [text, `${text}y`],
    },
    'the number of members': { schema: many({ maxProperties: 1_000_000 }), value: wide },
    'the names of all members': { schema: many({ propertyNames: { type: 'string' } }), value: wide },
    'the schemas of all members': { schema: many({ additionalProperties: { type: 'number' } }), value: wide },
    'alternatives that fail one after the other': {
      schema: { items: { oneOf: Array.from({ length: 200 }, (_, index) => ({ const: index })) } },
      value: Array.from({ length: 60_000 }, () => 199),
    },
    'objects that are compared with objects': {
      schema: { items: { enum: Array.from({ length: 100 }, (_, index) => ({ a: { b: index } })) } },
      value: Array.from({ length: 60_000 }, () => ({ a: { b: 99 } })),
    },
  };
  for (const [what, { schema, value }] of Object.entries(COSTLY)) {
    it(`a check counts ${what}, and refuses a value that takes too much work`, () => {
      assert.deepEqual(validateSchema(schema, 'schema'), []);
      assert.match(compileSchema(schema)(value)[0] ?? '', /takes too much work/);
    });
  }

  it('one long text is counted once, however many keywords check its length', () => {
    assert.deepEqual(compileSchema(many({ minLength: 1, maxLength: 2_000_000 }))(text + text), []);
  });

  it('each check has the whole limit of work for itself', () => {
    const check = compileSchema(many({ maxProperties: 1_000_000 }, 20));
    for (let round = 0; round < 4; round += 1) assert.deepEqual(check(wide), []);
  });

  it('an honest value of the largest size is checked: rows of a table, nested objects, a long text', () => {
    const row = {
      type: 'object',
      properties: { name: { type: 'string', minLength: 1 }, count: { type: 'integer', minimum: 0 } },
      required: ['name', 'count'],
      additionalProperties: false,
    };
    const rows = Array.from({ length: 30_000 }, (_, count) => ({ name: `row ${count}`, count }));
    assert.deepEqual(compileSchema({ type: 'array', items: row, uniqueItems: true })(rows), []);
    const variants = Array.from({ length: 8 }, (_, index) => ({ ...row, required: ['name', 'count', `x${index}`] }));
    assert.deepEqual(compileSchema({ type: 'array', items: { anyOf: [...variants, row] } })(rows), []);
    assert.deepEqual(compileSchema({ type: 'string', minLength: 1, maxLength: 2_000_000 })(text + text), []);
    assert.deepEqual(compileSchema({ type: 'string', maxLength: 3 })('a😀b'), [], 'characters, not code units');
  });

  it('text too long for the patterns is refused, not matched', () => {
    const check = compileSchema({ type: 'string', pattern: '(a|b|c|d|e|f|g){1,40}x' });
    assert.match(check('ab'.repeat(500_000))[0] ?? '', /too much work/);
  });

  it('different patterns do not share a cache entry', () => {
    const check = compileSchema({
      properties: { a: { pattern: '^a+$' }, b: { pattern: '^b+$' }, c: { pattern: '^/a+$/' } },
    });
    assert.deepEqual(check({ a: 'aa', b: 'bb' }), []);
    assert.notEqual(check({ a: 'bb' }).length, 0);
    assert.notEqual(check({ b: 'aa' }).length, 0);
    assert.notEqual(check({ c: 'aa' }).length, 0);
  });

  it('patterns of one schema do not affect the next schema', () => {
    const compiler = createSchemaCompiler();
    const letters = compiler.check({ pattern: '^[a-z]+$' });
    const digits = compiler.check({ pattern: '^[0-9]+$' });
    assert.deepEqual([letters('ab').length, letters('12').length], [0, 1]);
    assert.deepEqual([digits('ab').length, digits('12').length], [1, 0]);
  });

  it('uniqueItems checks many large items in linear time', () => {
    const items = Array.from({ length: 20_000 }, (_, n) => ({ n, same: [1, 2, { deep: 'x' }] }));
    const check = compileSchema({ type: 'array', uniqueItems: true });
    assert.deepEqual(check(items), []);
    assert.match(check([...items, { same: [1, 2, { deep: 'x' }], n: 3 }])[0] ?? '', /duplicate/);
  });

  it('a value whose depth would exhaust the stack is refused', () => {
    const check = compileSchema({ $defs: { a: { items: { $ref: '#/$defs/a' } } }, $ref: '#/$defs/a' });
    assert.deepEqual(check(nested(50, (inner) => [inner], 1)), []);
    assert.match(check(nested(100_000, (inner) => [inner], 1))[0] ?? '', /too deep/);
  });

  it('members of the prototype of a value do not count', () => {
    const check = compileSchema({
      type: 'object',
      required: ['toString'],
      properties: { toString: { type: 'string' } },
    });
    assert.notEqual(check({}).length, 0);
    assert.deepEqual(check({ toString: 'x' }), []);
  });
});

describe('ordinary schemas', () => {
  const ORDINARY: Record<string, { schema: JsonObject; good: Json[]; bad: Json[] }> = {
    'draft-07 with definitions, a tuple and a dependency': {
      schema: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        $id: 'https://example.com/x',
        type: 'object',
        definitions: { name: { type: 'string', minLength: 1 } },
        properties: {
          pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false },
          name: { $ref: '#/definitions/name' },
        },
        dependencies: { pair: ['name'] },
      },
      good: [{ pair: ['a', 1], name: 'x' }, {}],
      bad: [{ pair: ['a', 'b'], name: 'x' }, { pair: ['a', 1, 2], name: 'x' }, { pair: ['a', 1] }, { name: '' }],
    },
    'a tree that refers to itself through its members': {
      schema: {
        $defs: {
          node: {
            type: 'object',
            properties: { value: { type: 'number' }, left: { $ref: '#/$defs/node' }, right: { $ref: '#/$defs/node' } },
            required: ['value'],
            additionalProperties: false,
          },
        },
        $ref: '#/$defs/node',
      },
      good: [{ value: 1, left: { value: 2 }, right: { value: 3, left: { value: 4 } } }],
      bad: [
        { value: 1, left: {} },
        { value: 1, middle: { value: 1 } },
      ],
    },
    'a tree that refers to the whole schema': {
      schema: {
        type: 'object',
        properties: { value: { type: 'number' }, children: { type: 'array', items: { $ref: '#' } } },
        required: ['value'],
      },
      good: [{ value: 1, children: [{ value: 2, children: [{ value: 3 }] }] }],
      bad: [
        { value: 1, children: [{ value: 2, children: [{ value: 'x' }] }] },
        { value: 1, children: [{}] },
      ],
    },
    'two definitions that refer to each other': {
      schema: {
        $defs: {
          row: { type: 'object', properties: { cells: { $ref: '#/$defs/cells' } } },
          cells: { type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/row' }] } },
        },
        $ref: '#/$defs/row',
      },
      good: [{ cells: ['a', { cells: [{ cells: [] }] }] }],
      bad: [{ cells: ['a', { cells: [1] }] }],
    },
    'any JSON value, written as a schema': {
      schema: {
        $defs: {
          json: {
            anyOf: [
              { type: ['string', 'number', 'boolean', 'null'] },
              { type: 'array', items: { $ref: '#/$defs/json' } },
              { type: 'object', additionalProperties: { $ref: '#/$defs/json' } },
            ],
          },
        },
        properties: { data: { $ref: '#/$defs/json' } },
      },
      good: [{ data: [1, { a: [null, 'x'] }] }],
      bad: [],
    },
    'checked formats and annotation formats': {
      schema: {
        properties: {
          day: { type: 'string', format: 'date' },
          mail: { type: 'string', format: 'email' },
          site: { type: 'string', format: 'uri' },
          price: { type: 'string', format: 'currency' },
        },
      },
      good: [{ day: '2026-02-28', mail: 'a@b.example', site: 'https://example.com/x', price: 'anything' }],
      bad: [{ day: '2026-02-30' }, { mail: 'kim' }, { site: 'not a URI' }, { mail: `${'a'.repeat(600)}@b.example` }],
    },
    'conditions and unevaluated members': {
      schema: {
        type: 'object',
        properties: { kind: { enum: ['a', 'b'] } },
        if: { properties: { kind: { const: 'a' } } },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: { properties: { a: { type: 'number' } }, required: ['a'] },
        else: { properties: { b: { type: 'string' } } },
        unevaluatedProperties: false,
      },
      good: [
        { kind: 'a', a: 1 },
        { kind: 'b', b: 'x' },
      ],
      bad: [{ kind: 'a' }, { kind: 'b', a: 1 }],
    },
  };
  for (const [name, { schema, good, bad }] of Object.entries(ORDINARY)) {
    it(`the schema check accepts ${name}`, () => {
      assert.deepEqual(validateSchema(schema, 'schema'), []);
      const check = compileSchema(schema);
      for (const value of good) assert.deepEqual(check(value), [], JSON.stringify(value));
      for (const value of bad) assert.notEqual(check(value).length, 0, JSON.stringify(value));
    });
  }

  it('an unknown keyword is reported, and the schema compiles without it', () => {
    const schema = { type: 'object', requird: ['a'], 'x-order': 1 };
    assert.deepEqual(
      validateSchema(schema, 'inputSchema').map(({ problem, path }) => [problem, path]),
      [['unknown-keyword', 'inputSchema']],
    );
    assert.deepEqual(compileSchema(schema)({}), []);
  });

  it('validation applies no defaults', () => {
    const value = {};
    assert.deepEqual(compileSchema({ properties: { a: { type: 'string', default: 'x' } } })(value), []);
    assert.deepEqual(value, {});
  });

  it('validation reports every missing or wrong member with its location', () => {
    const check = compileSchema({
      type: 'object',
      properties: { rows: { type: 'array', items: { type: 'number' } } },
      required: ['rows', 'name'],
      additionalProperties: false,
    });
    assert.deepEqual(check({ rows: [1, 'x'], extra: true }).toSorted(), [
      'rows.1 must be number',
      'the value must NOT have additional properties ("extra")',
      "the value must have required property 'name'",
    ]);
  });

  it('the cache returns the same result and drops the oldest entry beyond its size', () => {
    const compiler = createSchemaCompiler();
    const first = compiler.check({ const: -1 });
    assert.equal(compiler.check({ const: -1 }), first);
    for (let n = 0; n < 500; n += 1) compiler.check({ const: n });
    assert.notEqual(compiler.check({ const: -1 }), first);
  });

  it('the compiler validates a schema as validateSchema does, and compiles an equal schema once for validation and checks', (t) => {
    const compiler = createSchemaCompiler();
    for (const schema of [...Object.values(ATTACKS), { type: 'string', unknown: 1 }, {}]) {
      assert.deepEqual(compiler.validate(schema, 'inputSchema'), validateSchema(schema, 'inputSchema'));
    }
    const compile = t.mock.method(Ajv2020.prototype, 'compile');
    const schema = (): JsonObject => ({ type: 'object', properties: { a: { type: 'integer' } } });
    for (const what of ['inputSchema', 'outputSchema']) assert.deepEqual(compiler.validate(schema(), what), []);
    assert.deepEqual(compiler.check(schema())({ a: 1 }), []);
    assert.equal(compile.mock.callCount(), 1);
  });

  it('a check never throws for any value', () => {
    const check = compileSchema({
      type: 'object',
      properties: { a: { uniqueItems: true }, b: { pattern: '^x' } },
      additionalProperties: { type: 'number' },
    });
    assertProperty(property(jsonValue(), (value) => Array.isArray(check(value as Json))));
    assert.notEqual(check({ a: ['\ud800', '\ud800'] }).length, 0);
  });
});
