import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import { replyFormat } from './reply-format.ts';

function formatOf(returns: string | undefined, reply: string) {
  const spec = returns === undefined ? {} : { returns };
  const directory = { byUid: () => ({ agent: { spec } }) as unknown as AgentState } as unknown as AgentDirectory;
  return replyFormat('uid', reply, { directory }).format;
}

const COUNT = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}';

describe('the format of a reply', () => {
  it('a reply is JSON when the gateway finds that it matches the schema of its agent', () => {
    assert.equal(formatOf(COUNT, '{"count":7}'), 'json');
    for (const reply of ['{"count":"7"}', 'seven', '', '[7]', '{"count":1e999}']) {
      assert.equal(formatOf(COUNT, reply), undefined, reply);
    }
  });

  it('a reply of an agent without a schema, or with one that cannot be used, has no format', () => {
    assert.equal(formatOf(undefined, '{"count":7}'), undefined);
    assert.equal(formatOf('{', '{"count":7}'), undefined);
    assert.equal(formatOf('{"type":"object","$ref":"https://example.com/s.json"}', '{"count":7}'), undefined);
  });
});
