import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { type Change, Store } from '../../kube/informer/store.ts';
import type { StoredAgent } from '../kube/types.ts';
import { AgentRanks } from './agent-ranks.ts';

interface AgentFields {
  readonly name: string;
  readonly policy?: string;
  readonly second?: number;
  readonly isDeleting?: boolean;
  readonly version?: number;
}

function anAgent({ name, policy = 'standard', second = 0, isDeleting = false, version = 1 }: AgentFields): StoredAgent {
  const creationTimestamp = new Date(Date.UTC(2031, 0, 1, 0, 0, second)).toISOString();
  const metadata = {
    name,
    namespace: 'team-a',
    uid: `u-${name}`,
    resourceVersion: `${version}`,
    creationTimestamp,
    ...(isDeleting ? { deletionTimestamp: creationTimestamp } : {}),
  };
  return { metadata, spec: { trustPolicyRef: { name: policy } } } as unknown as StoredAgent;
}

/** What the ranks must be, by definition. */
function expectedRank(agents: readonly StoredAgent[], agent: StoredAgent) {
  const all = agents.filter(
    ({ metadata, spec }) =>
      metadata.deletionTimestamp === undefined && spec.trustPolicyRef.name === agent.spec.trustPolicyRef.name,
  );
  const age = ({ metadata }: StoredAgent) => `${metadata.creationTimestamp} ${metadata.uid}`;
  return { older: all.filter((other) => age(other) < age(agent)).length, all: all.length };
}

describe('the ranks of the agents of a policy', () => {
  it('the oldest agent has rank 0, and the UID decides between agents of one second', () => {
    const ranks = new AgentRanks();
    const agents = [
      { name: 'c', second: 5 },
      { name: 'b', second: 9 },
      { name: 'a', second: 9 },
    ].map(anAgent);
    for (const object of agents) ranks.onChange({ type: 'added', object });
    assert.deepEqual(
      agents.map((agent) => ranks.rank(agent).older),
      [0, 2, 1],
    );
    assert.deepEqual(ranks.rank(anAgent({ name: 'x', policy: 'other' })), { older: 0, all: 0 });
  });

  it('the ranks equal their definition after any changes', () => {
    const change = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      policy: fc.constantFrom('standard', 'narrow'),
      isDeleting: fc.boolean(),
      isGone: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (steps) => {
        const ranks = new AgentRanks();
        const store = new Store<StoredAgent>();
        steps.forEach(({ name, isGone, ...fields }, version) => {
          const second = name.charCodeAt(0) % 3;
          const changes: Change<StoredAgent>[] = isGone
            ? store.delete(`team-a/${name}`)
            : store.set(anAgent({ name, second, version, ...fields }));
          for (const one of changes) ranks.onChange(one);
          for (const agent of store.list()) {
            if (agent.metadata.deletionTimestamp !== undefined) continue;
            assert.deepEqual(ranks.rank(agent), expectedRank(store.list(), agent));
          }
        });
      }),
    );
  });

  it('the rank of one agent reads no other agent', () => {
    const ranks = new AgentRanks();
    let reads = 0;
    const agents = Array.from({ length: 500 }, (_, second) => {
      const agent = anAgent({ name: `agent-${second}`, second });
      return new Proxy(agent, { get: (target, member) => ((reads += 1), Reflect.get(target, member)) as unknown });
    });
    for (const object of agents) ranks.onChange({ type: 'added', object });
    reads = 0;
    for (const agent of agents) ranks.rank(agent);
    assert.ok(reads <= agents.length * 10, `${reads} reads`);
  });
});
