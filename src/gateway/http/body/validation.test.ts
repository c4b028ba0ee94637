import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type TSchema, Type } from 'typebox';
import { compileValidator } from './validation.ts';

const closed = { additionalProperties: false };
const Item = Type.Union([
  Type.Object({ type: Type.Literal('a'), text: Type.String({ maxLength: 5 }) }, closed),
  Type.Object({ type: Type.Literal('b'), more: Type.Array(Type.Integer(), { maxItems: 3_000 }) }, closed),
]);
const Body = Type.Object({ items: Type.Array(Item, { maxItems: 2_000 }), name: Type.Optional(Type.String()) }, closed);

interface Violation {
  instancePath: string;
  message: string;
}

function violationOf(value: unknown, schema: TSchema = Body): Violation[] {
  const validate = compileValidator({ schema, httpPart: 'body', method: 'POST', url: '/' });
  const result = validate(value) as { error?: Violation[] };
  return (result.error ?? []).map(({ instancePath, message }) => ({ instancePath, message }));
}

describe('the check of bodies', () => {
  it('a small body is refused with the path and the rule of its first violation', () => {
    assert.deepEqual(violationOf({ items: [], name: 1 }), [{ instancePath: '/name', message: 'must be string' }]);
    assert.equal(violationOf({ items: [], more: 1 })[0]?.instancePath, '/more');
    assert.deepEqual(violationOf({ items: [{ type: 'a', text: 'short' }] }), []);
  });

  it('a large body is refused with the path of its first violation', () => {
    const items = Array.from({ length: 1_500 }, () => ({ type: 'a', text: 'short' }));
    assert.deepEqual(violationOf({ items }), []);
    assert.match(
      violationOf({ items: items.with(1_200, { type: 'a', text: 'too long' }) })[0]?.instancePath ?? '',
      /^\/items\/1200/,
    );
    assert.equal(violationOf({ items, name: 7 })[0]?.instancePath, '/name');
    assert.deepEqual(violationOf({ items: items.with(3, { type: 'b', more: Array(2_500).fill('x') } as never) }), [
      { instancePath: '/items/3', message: 'does not match its schema' },
    ]);
  });

  it('the check of a list with too many items looks at few of them', () => {
    let reads = 0;
    const items = new Proxy(Array(400_000).fill(0), {
      get(target, name, receiver) {
        if (typeof name === 'string' && /^\d+$/.test(name)) reads += 1;
        return Reflect.get(target, name, receiver) as unknown;
      },
    });
    assert.deepEqual(violationOf({ items }), [
      { instancePath: '/items', message: 'must not have more than 2000 items' },
    ]);
    assert.ok(reads < 10, `${reads} reads`);
  });

  it('a query is converted to the types of its schema, and a body is not', () => {
    const schema = Type.Object({ wait: Type.Integer() }, closed);
    const validate = compileValidator({ schema, httpPart: 'querystring', method: 'GET', url: '/' });
    assert.deepEqual(validate({ wait: '5' }), { value: { wait: 5 } });
    assert.equal(violationOf({ wait: '5' }, schema)[0]?.instancePath, '/wait');
  });
});
