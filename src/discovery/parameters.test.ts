import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parameterText, parameterTextOf } from './parameters.ts';

describe('the parameters of a schema', () => {
  it('names and descriptions are read, those of members of objects and lists too', () => {
    const inner = { type: 'object', properties: { street: { type: 'string', description: 'A street.' } } };
    const text = parameterText({
      properties: { address: inner, orders: { items: { properties: { price: {} } } }, odd: 3 },
    });
    assert.deepEqual(text.split('\n'), ['address', 'orders', 'street A street.', 'price']);
  });

  it('the text of a large schema is bounded', () => {
    const leaf = { description: 'x'.repeat(10_000) };
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`parameter_${at}`, leaf]));
    assert.ok(parameterText({ properties: many }).length <= 2_048);
    assert.ok(
      parameterText({ properties: Object.fromEntries(Object.keys(many).map((name) => [name, {}])) }).split('\n')
        .length <= 64,
    );
  });

  it('a text that is no schema has no parameters', () => {
    for (const text of ['', 'null', '[]', '{"properties": 1}', '{']) assert.equal(parameterTextOf(text), '', text);
  });
});
