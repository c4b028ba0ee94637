import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasRequiredForm } from './reply-format.ts';

const COUNT = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}';

describe('the form of a reply', () => {
  it('a reply has the required form when it is JSON that matches the schema of its agent', () => {
    assert.ok(hasRequiredForm(COUNT, '{"count":7}'));
    for (const reply of ['{"count":"7"}', 'seven', '', '[7]', '{"count":1e999}'])
      assert.ok(!hasRequiredForm(COUNT, reply), reply);
  });

  it('a reply of an agent without a schema, or with one that cannot be used, has none', () => {
    for (const returns of [undefined, '{', '{"type":"object","$ref":"https://example.com/s.json"}'])
      assert.ok(!hasRequiredForm(returns, '{"count":7}'), returns ?? 'no schema');
  });
});
