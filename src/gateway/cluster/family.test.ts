import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LABELS } from '../../api/cluster.ts';
import type { Agent, AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { AgentPod } from '../../identity/agent-pod.ts';
import { PodBindings } from '../../identity/pod-bindings.ts';
import { Store } from '../../kube/informer/store.ts';
import { accountsOf } from '../ledger/accounts.ts';
import { WatchedAgentDirectory } from './agent-directory.ts';
import { pruneAgent } from './prune.ts';

function anAgent(name: string, parent?: string, spec: Partial<AgentSpec> = {}, policy = 'p'): Agent {
  const labels = parent === undefined ? {} : { labels: { [LABELS.parentAgent]: `uid-${parent}`, other: 'x' } };
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: { name, namespace: 'team-a', uid: `uid-${name}`, generation: 1, ...labels },
    spec: {
      trustPolicyRef: { name: policy },
      model: { primary: 'openai/a' },
      prompt: { system: 'x' },
      ...spec,
    },
  };
}

function withLevel(agent: Agent, level: string): Agent {
  const { uid = '', generation = 0 } = agent.metadata;
  const trust = { agentUid: uid, agentGeneration: generation, policyUid: 'uid-p', policyGeneration: 1, level };
  return { ...agent, status: { level, trust: trust as never } };
}

function directoryOf(...objects: Agent[]): WatchedAgentDirectory {
  const [agents, policies] = [new Store<Agent>(), new Store<TrustPolicy>()];
  const directory = new WatchedAgentDirectory(agents, policies, new PodBindings<Agent>(agents, new Store<AgentPod>()));
  for (const name of ['p', 'q']) {
    const metadata = { name, namespace: 'team-a', uid: `uid-${name}`, generation: 1 };
    policies.set({
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'TrustPolicy',
      metadata,
      spec: { level: { initial: 'standard' } },
    });
  }
  for (const object of objects) agents.set(pruneAgent(object));
  return directory;
}

const accountNames = (directory: WatchedAgentDirectory, name: string): string[] => {
  const state = directory.agent('team-a', name);
  assert.ok(state);
  return accountsOf(state, directory).map((holder) => holder.name);
};

describe('a family of agents at the gateway', () => {
  it('an agent has its ancestors, nearest first, and its children', () => {
    const directory = directoryOf(anAgent('root'), anAgent('child', 'root'), anAgent('grandchild', 'child'));
    const state = directory.agent('team-a', 'grandchild');
    assert.deepEqual(
      state?.ancestors.map(({ uid }) => uid),
      ['uid-child', 'uid-root'],
    );
    assert.deepEqual(
      directory.children('uid-root').map(({ uid }) => uid),
      ['uid-child'],
    );
    assert.equal(directory.childrenUnder('team-a', 'p'), 2);
    assert.ok(state);
    assert.equal(directory.snapshot(state, false).generation, 2);
  });

  it('calls of a child are charged to every account of its tree once, its own first', () => {
    const directory = directoryOf(anAgent('root'), anAgent('child', 'root'), anAgent('copy', 'child', {}, 'q'));
    assert.deepEqual(accountNames(directory, 'root'), ['agent/uid-root', 'policy/uid-p']);
    assert.deepEqual(accountNames(directory, 'child'), ['agent/uid-child', 'policy/uid-p', 'agent/uid-root']);
    assert.deepEqual(accountNames(directory, 'copy'), [
      'agent/uid-copy',
      'policy/uid-q',
      'agent/uid-child',
      'policy/uid-p',
      'agent/uid-root',
    ]);
  });

  it('the suspension of an agent suspends its children, and a child without its parent is suspended', () => {
    const directory = directoryOf(anAgent('root', undefined, { suspend: true }), anAgent('child', 'root'));
    assert.equal(directory.agent('team-a', 'child')?.suspended, true);
    assert.equal(directoryOf(anAgent('child', 'gone')).agent('team-a', 'child')?.suspended, true);
  });

  it('a child has at most the level of its parent under the same policy, and its own under another one', () => {
    const low = withLevel(anAgent('root'), 'sandboxed');
    const directory = directoryOf(low, anAgent('child', 'root'), anAgent('copy', 'root', {}, 'q'));
    assert.equal(directory.agent('team-a', 'root')?.level, 'sandboxed');
    assert.equal(directory.agent('team-a', 'child')?.level, 'sandboxed');
    assert.equal(directory.agent('team-a', 'copy')?.level, 'standard');
  });

  it('labels that form a circle or name an agent of another namespace end the search', () => {
    const circle = directoryOf(anAgent('a', 'b'), anAgent('b', 'a'));
    assert.ok((circle.agent('team-a', 'a')?.ancestors.length ?? 0) < 10);
    assert.equal(circle.agent('team-a', 'a')?.suspended, true);
  });
});
