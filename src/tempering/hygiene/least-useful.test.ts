import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aSharedTool } from '../tempering.testing.ts';
import type { RegisteredTool, ToolStatistics } from '../types.ts';
import { leastUseful, replaceableTools } from './least-useful.ts';

const OWNER = { agent: 'analyst', namespace: 'team-a' };

function aTool(name: string, changes: Partial<RegisteredTool> = {}): RegisteredTool {
  return { ...aSharedTool(name), tier: 'Agent', ...changes };
}

function uses(rootMessages: number, lastUsedAt: string): ToolStatistics {
  return { rootMessages, lastUsedAt } as ToolStatistics;
}

describe('the least useful tool of an agent', () => {
  it('fewest messages decide, then the time of the last use', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => aTool(name)) as [RegisteredTool, RegisteredTool, RegisteredTool];
    const used = [
      { tool: a, uses: uses(3, '2026-01-03') },
      { tool: b, uses: uses(1, '2026-01-02') },
      { tool: c, uses: uses(1, '2026-01-01') },
    ];
    assert.equal(leastUseful(used)?.tool, c);
    assert.equal(leastUseful([]), undefined);
  });

  it('only active tools of tier Agent of this agent can leave, and none that a composed tool calls', () => {
    const step = aTool('step');
    const pin = `step@${step.digest}`;
    const steps = [{ name: 'one', tool: pin, inputMapping: '{}' }];
    const chain = aSharedTool('chain', { implementation: { mode: 'Compose', steps } });
    const all = [
      step,
      chain,
      aTool('free'),
      aTool('inactive', { active: false }),
      aTool('session', { tier: 'Session' }),
      aTool('foreign', { owner: { agent: 'other', namespace: 'team-a', session: '' } }),
    ];
    assert.deepEqual(
      replaceableTools(all, OWNER).map(({ artifact }) => artifact.name),
      ['free'],
    );
  });
});
