import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { createToolOrder } from './tool-order.ts';

function tool(name: string, acceptedAt?: string): ToolDescriptor {
  const forged = { digest: `sha256:${'0'.repeat(64)}`, tier: 'Session', acceptedAt } as const;
  return {
    name,
    description: name,
    inputSchema: {},
    category: 'other',
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
    ...(acceptedAt === undefined ? {} : { forged: { ...forged, acceptedAt } }),
  };
}
const names = (tools: readonly ToolDescriptor[]): string[] => tools.map(({ name }) => name);

describe('the order of tools', () => {
  const [b, z] = [tool('b'), tool('z')];
  const [first, second, third] = [tool('m', '2031-01-01'), tool('a', '2031-01-02'), tool('c', '2031-01-02')];

  it('built-in tools come first, by name, and forged tools in the order in which they were accepted', () => {
    const tools = [third, second, z, first, b];
    assert.deepEqual(names(createToolOrder().sort(tools)), ['b', 'z', 'm', 'a', 'c']);
    assert.deepEqual(names(createToolOrder().sort(tools.toReversed())), ['b', 'z', 'm', 'a', 'c']);
  });

  it('a tool that appears later in a message is appended, whatever its age', () => {
    const order = createToolOrder();
    assert.deepEqual(names(order.sort([z, second])), ['z', 'a']);
    assert.deepEqual(names(order.sort([first, z, second, b])), ['z', 'a', 'b', 'm']);
  });
});
