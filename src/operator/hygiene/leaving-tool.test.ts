import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Digest } from '../../lib/canonical.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import { Store } from '../../kube/informer/store.ts';
import { aPolicy, anAgent } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { aTool } from '../tool/tool.testing.ts';
import { TOOL_INDEX } from '../tool/tool-index.ts';
import { makesPlace, toolThatLeaves } from './leaving-tool.ts';

const digest = (name: string): Digest => `sha256:${name.padStart(64, '0')}`;
const AGENT = anAgent();
const NEW = { artifact: anArtifact(), digest: digest('f') };

/** A tool of the agent in service. */
function own(name: string, change: { steps?: StoredTool['facts']['steps']; active?: boolean } = {}): StoredTool {
  const { steps = [], active = true } = change;
  const ownerReferences = [
    { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'analyst', uid: AGENT.metadata.uid },
  ];
  return aTool(
    { tier: 'Agent', agent: 'analyst', tool: name, digest: digest(name), steps },
    { metadata: { ownerReferences }, status: { active } },
  );
}

function policy(whenFull: 'Refuse' | 'DeactivateLeastUseful', agentTools: number) {
  return aPolicy({ forge: { limits: { agentTools, whenFull } } });
}

const promotion = (agentTools: number, whenFull: 'Refuse' | 'DeactivateLeastUseful' = 'DeactivateLeastUseful') => ({
  agent: AGENT,
  policy: policy(whenFull, agentTools),
  tool: NEW,
});

describe('the tool that leaves for a promoted one', () => {
  it('an agent at its maximum makes place, and one below or above it does not', () => {
    const held = [own('a'), own('b'), own('c', { active: false })];
    assert.equal(makesPlace(promotion(2), held), true);
    assert.equal(makesPlace(promotion(2, 'Refuse'), held), false);
    assert.equal(makesPlace(promotion(3), held), false);
    assert.equal(makesPlace(promotion(1), held), false, 'a lowered maximum deactivates nothing');
  });

  it('a tool that steps of another one call, or of the new one, never leaves', () => {
    const chain = own('c', { steps: [{ name: 'a', digest: digest('a') }] });
    assert.equal(makesPlace(promotion(2), [own('a'), chain]), true);
    const caller = { artifact: anArtifact(), digest: digest('f') };
    const steps = [{ name: 'one', tool: `c@${digest('c')}`, inputMapping: '{}' }];
    caller.artifact = { ...caller.artifact, implementation: { mode: 'Compose', steps } };
    assert.equal(makesPlace({ ...promotion(2), tool: caller }, [own('a'), chain]), false);
  });

  it('a list of deactivated tools that is full makes no place', () => {
    const deactivatedTools = Array.from({ length: 100 }, (_, index) => ({
      digest: digest(`${index}`),
      tool: 'old',
      cause: 'LeastUseful' as const,
      message: 'x',
      since: '2031-05-05T11:00:00Z',
    }));
    const agent = { ...AGENT, status: { ...AGENT.status, deactivatedTools } };
    assert.equal(makesPlace({ ...promotion(1), agent }, [own('a')]), false);
  });

  it('the fewest messages decide, and a tool without a recorded use goes first', async () => {
    const store = new Store<StoredTool>();
    const tools = new Cache([store]);
    tools.addIndex(TOOL_INDEX.namespace, ({ metadata }) => [metadata.namespace]);
    for (const tool of [own('a'), own('b')]) store.set(tool);
    const uses = (entries: [string, number][]) =>
      new Map(entries.map(([name, count]) => [digest(name), { rootMessages: count, lastUsedAt: '2031-05-05' }]));
    const leaving = async (entries: [string, number][]) =>
      toolThatLeaves({ tools, store: { messageUses: async () => uses(entries) } }, promotion(2));
    assert.equal(
      (
        await leaving([
          ['a', 3],
          ['b', 9],
        ])
      )?.tool,
      'a',
    );
    assert.equal((await leaving([['a', 3]]))?.tool, 'b');
    assert.match((await leaving([]))?.message ?? '', /its agent had its maximum of tools.* \(0\) when "/);
  });
});
