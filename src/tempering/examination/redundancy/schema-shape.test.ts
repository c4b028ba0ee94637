import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../lib/json.ts';
import { areCompatible, shapesOf } from './schema-shape.ts';

const shapes = (input: JsonObject, output: JsonObject = {}) =>
  shapesOf({ inputSchema: JSON.stringify(input), outputSchema: JSON.stringify(output) });
const members = (properties: JsonObject, required = Object.keys(properties), more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  required,
  ...more,
});
const NUMBER = { type: 'number' };
const TEXT = { type: 'string' };
const CLOSED = { additionalProperties: false };

describe('the shapes of two tools', () => {
  const cases: [string, boolean, JsonObject, JsonObject][] = [
    ['the same members', true, members({ a: NUMBER }), members({ a: NUMBER })],
    ['an integer and a number', true, members({ a: { type: 'integer' } }), members({ a: NUMBER })],
    ['one of several types', true, members({ a: { type: ['null', 'number'] } }), members({ a: NUMBER })],
    ['another type of a required member', false, members({ a: TEXT }), members({ a: NUMBER })],
    ['another required member', false, members({ a: NUMBER }), members({ b: NUMBER })],
    ['an optional member more', true, members({ a: NUMBER, b: TEXT }, ['a']), members({ a: NUMBER })],
    ['a required member more', false, members({ a: NUMBER, b: TEXT }), members({ a: NUMBER })],
    [
      'a required member that the other one declares as optional',
      true,
      members({ a: NUMBER, b: TEXT }),
      members({ a: NUMBER, b: TEXT }, ['a']),
    ],
    [
      'a required member that a closed schema does not have',
      false,
      members({ a: NUMBER, b: TEXT }, ['a', 'b']),
      members({ a: NUMBER, b: TEXT }, [], { properties: { a: NUMBER }, ...CLOSED }),
    ],
    ['a schema that says more', true, { $ref: '#/x' }, members({ a: NUMBER })],
    ['a list and an object', false, { type: 'array' }, members({ a: NUMBER })],
  ];
  for (const [what, isCompatible, one, other] of cases) {
    it(`${what} ${isCompatible ? 'can' : 'cannot'} belong to tools that do the same`, () => {
      assert.equal(areCompatible(shapes(one), shapes(other)), isCompatible);
      assert.equal(areCompatible(shapes(other), shapes(one)), isCompatible);
      assert.equal(areCompatible(shapes({}, one), shapes({}, other)), isCompatible);
    });
  }

  it('a hostile schema has no shape, or a bounded one', () => {
    const many = members(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`m${index}`, NUMBER])));
    assert.equal(shapes(many).input, undefined);
    assert.equal(shapes(members({ ['x'.repeat(500)]: NUMBER })).input, undefined);
    const types = { type: Array.from({ length: 1_000 }, () => 'x'.repeat(1_000)) };
    assert.ok(JSON.stringify(shapes(types).input).length < 1_000);
    assert.equal(shapesOf({ inputSchema: '[', outputSchema: 'null' }).input, undefined);
  });
});
