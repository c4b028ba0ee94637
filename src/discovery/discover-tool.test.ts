import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallContext } from '../tools/contract.ts';
import { discoverTool } from './discover-tool.ts';
import type { DiscoveryQuery } from './port.ts';

function aTool() {
  const queries: DiscoveryQuery[] = [];
  const tool = discoverTool({
    search: async (query) => {
      queries.push(query);
      return { capabilities: [], more: 0 };
    },
  });
  return { queries, call: async (kind: string) => tool.call({ query: 'csv', kind }, {} as CallContext) };
}

describe('discover_capabilities', () => {
  it('discover_capabilities searches one kind, or every kind for "all"', async () => {
    const { queries, call } = aTool();
    await call('Skill');
    await call('ALL');
    assert.deepEqual(queries, [{ query: 'csv', kind: 'skill' }, { query: 'csv' }]);
  });

  it('discover_capabilities refuses an unknown kind and names the kinds', async () => {
    const { queries, call } = aTool();
    await assert.rejects(call('tools'), {
      code: 'TEMPER_TOOL_INPUT_INVALID',
      message: /"tools".*use tool, skill.*all$/,
    });
    assert.deepEqual(queries, []);
  });
});
