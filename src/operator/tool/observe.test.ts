import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { addIndexes } from '../agent/observe.ts';
import { anAgent } from '../agent/observed.testing.ts';
import { ValidationCache } from '../agent/validation-cache.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredApproval, StoredRequest } from '../approval/stored-decision.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube/types.ts';
import { ToolObserver } from './observe.ts';
import type { StoredTool } from './stored-tool.ts';
import { aTool, NONCE } from './tool.testing.ts';
import { addToolIndexes } from './tool-index.ts';

const NO_FACTS = { operator: 'temper-operator', sourceLost: false, wasReported: false };

function observerOf(tools: readonly StoredTool[], owners: readonly StoredAgent[] = []): ToolObserver {
  const stored = new Store<StoredTool>();
  for (const tool of tools) stored.set(tool);
  const caches = {
    tools: new Cache([stored]),
    approvals: new Cache([new Store<StoredApproval>()]),
    requests: new Cache([new Store<StoredRequest>()]),
  };
  addToolIndexes(caches);
  const storedAgents = new Store<StoredAgent>();
  for (const owner of owners) storedAgents.set(owner);
  const agents = new Cache([storedAgents]);
  addIndexes(agents, new Cache([new Store<Pod>()]));
  return new ToolObserver({
    ...caches,
    agents,
    policies: new Cache([new Store<StoredPolicy>()]),
    clock: new FakeClock(),
    validation: new ValidationCache(),
    admissionAge: () => ({ since: new Date(0) }),
    latest: (tool) => tool,
  });
}

describe('what a tool is observed with', () => {
  it('the evidence of a Shared tool is that of older tools of tier Agent, and of younger ones with observed answers alone', () => {
    const common = { observedGeneration: 1, lastTransitionTime: '2031-05-05T00:00:00Z', message: '' };
    const active = { type: 'Active', status: 'True' as const, reason: 'Verified', ...common };
    const reported = { type: 'Shareable', status: 'False' as const, reason: 'ReportedAnswers', ...common };
    const ofAgent = (name: string, year: number, isReported: boolean) =>
      aTool(
        { tier: 'Agent', agent: name },
        {
          metadata: { name, uid: name, creationTimestamp: `${year}-01-01T00:00:00Z` },
          status: { active: true, conditions: isReported ? [active, reported] : [active] },
        },
      );
    const shared = aTool({ requestNonce: NONCE }, { metadata: { creationTimestamp: '2031-01-01T00:00:00Z' } });
    const others = [
      ofAgent('old-reported', 2030, true),
      ofAgent('young-reported', 2032, true),
      ofAgent('young-observed', 2032, false),
    ];
    const { foundations } = observerOf([shared, ...others]).activity(shared, NO_FACTS);
    assert.deepEqual(foundations.map(({ metadata }) => metadata.name).sort(), ['old-reported', 'young-observed']);
  });

  it('agents of another namespace that hold the same tool do not count for tier Shared', () => {
    const owners = ['team-a', 'team-b'].map((namespace) => {
      const agent = anAgent();
      return { ...agent, metadata: { ...agent.metadata, namespace, uid: `agent-${namespace}` } };
    });
    const [own, foreign] = owners.map(({ apiVersion, metadata: { namespace, name, uid } }) => {
      const ownerReferences = [{ apiVersion, kind: 'Agent', name, uid }];
      const metadata = { name: 'held', namespace, uid: `tool-${namespace}`, ownerReferences };
      return aTool({ tier: 'Agent', agent: name }, { metadata, status: { active: true } });
    });
    assert.ok(own !== undefined && foreign !== undefined);
    const observed = observerOf([own, foreign], owners).sharing(own);
    assert.deepEqual(observed?.holders, owners.slice(0, 1));
  });
});
