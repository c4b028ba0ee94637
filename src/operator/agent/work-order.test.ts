import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { agentRank } from './work-order.ts';

const caches = (priority: string | undefined, maxPriority?: string) => {
  const agent = { spec: { priority, trustPolicyRef: { name: 'policy' } } } as unknown as StoredAgent;
  const policy = { spec: { maxPriority } } as unknown as StoredPolicy;
  return [
    { get: (namespace: string, name: string) => (`${namespace}/${name}` === 'team-a/scout' ? agent : undefined) },
    { get: (namespace: string, name: string) => (`${namespace}/${name}` === 'team-a/policy' ? policy : undefined) },
  ] as const;
};

describe('the order of agents in the queues of the operator', () => {
  it('an agent and its schedules have the rank of its priority, within that of its policy', () => {
    assert.equal(agentRank(...caches('Critical', 'Critical'), 'team-a/scout'), 3);
    assert.equal(agentRank(...caches('Critical', 'Critical'), 'team-a/scout/schedule-id'), 3);
    assert.equal(agentRank(...caches('Critical', 'High'), 'team-a/scout'), 2);
    assert.equal(agentRank(...caches('Critical'), 'team-a/scout'), 1);
    assert.equal(agentRank(...caches(undefined), 'team-a/scout'), 1);
  });

  it('an agent that is gone has the lowest rank', () => {
    assert.equal(agentRank(...caches('Critical', 'Critical'), 'team-a/other'), 0);
  });
});
