import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  assert as assertProperty,
  constantFrom,
  dictionary,
  jsonValue,
  property,
  record,
  uniqueArray,
} from 'fast-check';
import { digestOf } from '../../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { planInputs } from './input-plan.ts';
import { schemaAt } from './schema-samples.ts';
import { seededRandom } from './seeded-random.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    text: { type: 'string', maxLength: 2_000 },
    count: { type: 'integer', minimum: 0, maximum: 50 },
    items: { type: 'array', items: { $ref: '#/$defs/item' }, maxItems: 200 },
    mode: { enum: ['fast', 'slow'] },
  },
  required: ['text', 'count'],
  $defs: { item: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } },
};
const check = createSchemaCompiler().check(SCHEMA);
const isValid = (input: Json): boolean => check(input).length === 0;
const TEST = { text: 'Hello', count: 3, items: [{ n: 1.5 }], mode: 'fast' };

function plan(tests: JsonObject[] = [TEST], recorded: Json[] = [], seed = 'a'): ReturnType<typeof planInputs> {
  const random = seededRandom(digestOf(seed), 'inputs');
  return planInputs({ inputSchema: SCHEMA, tests, recorded, isValid, random });
}

describe('the inputs of an examination', () => {
  it('one digest always gives the same inputs, and another one other samples', () => {
    assert.deepEqual(plan(), plan());
    assert.notDeepEqual(plan().samples, plan([TEST], [], 'b').samples);
  });

  it('every input matches the schema and occurs once', () => {
    const { bases, boundaries, neighbours, samples } = plan();
    const all = [...bases, ...boundaries, ...neighbours, ...samples];
    assert.ok(boundaries.length > 10 && neighbours.length > 5 && samples.length > 0);
    assert.ok(all.every(isValid));
    assert.equal(new Set(all.map((input) => JSON.stringify(input))).size, all.length);
  });

  it('the inputs contain empty, long, greatest and least values, and text outside ASCII', () => {
    const { boundaries, neighbours } = plan();
    const texts = [...boundaries, ...neighbours].map((input) => JSON.stringify(input));
    for (const part of ['"text":""', '"count":0', '"count":50', '"items":[]', '\u{1f600}']) {
      assert.ok(
        texts.some((text) => text.includes(part)),
        part,
      );
    }
    assert.ok(boundaries.some(({ items }) => Array.isArray(items) && items.length > 100));
    assert.ok(boundaries.some(({ text }) => typeof text === 'string' && text.length > 1_000));
  });

  it('hostile inputs of earlier uses are left out, and their number is bounded', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(90)}1${'}'.repeat(90)}`) as Json;
    const many = Array.from({ length: 500 }, (_, count) => ({ text: 'x', count: count % 50, extra: count }));
    const { bases } = plan([TEST], [deep, { text: 'x'.repeat(70_000), count: 1 }, 'no object', ...many]);
    assert.ok(bases.length <= 12);
    assert.ok(bases.every((input) => isJsonObject(input) && JSON.stringify(input).length < 70_000));
  });

  it('any schema and any input lead to a plan', () => {
    const type = constantFrom('string', 'number', 'array', 'object', 'null', 'nonsense');
    const schema = record({ type, items: jsonValue(), properties: dictionary(constantFrom('a', 'b'), jsonValue()) });
    assertProperty(
      property(schema, uniqueArray(jsonValue(), { maxLength: 4 }), (given, recorded) => {
        const inputSchema = { type: 'object', properties: { a: given, b: { $ref: '#/properties/b' } } } as JsonObject;
        const random = seededRandom(digestOf('seed'), 'inputs');
        planInputs({
          inputSchema,
          tests: [{ a: 1, b: [2] }],
          recorded: recorded as Json[],
          isValid: () => true,
          random,
        });
        schemaAt(inputSchema, ['b', 0, 'x']);
      }),
      { numRuns: 60 },
    );
  });
});
