import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { AgentPod } from '../../identity/agent-pod.ts';
import { PodBindings } from '../../identity/pod-bindings.ts';
import { Store } from '../../kube/informer/store.ts';
import { WatchedAgentDirectory } from './agent-directory.ts';
import { pruneAgent, prunePolicy } from './prune.ts';

const POD = { name: 'analyst-1', uid: 'pod-1' };

function buildAgent(generation: number, status: Agent['status']): Agent {
  const metadata = { name: 'analyst', namespace: 'team-a', uid: 'u', generation };
  const spec = { trustPolicyRef: { name: 'p' }, model: { primary: 'openai/a' }, prompt: { system: 'x' } };
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata,
    spec,
    ...(status === undefined ? {} : { status }),
  };
}

function buildPolicy(generation: number, uid = 'up', agents = 0): TrustPolicy {
  const metadata = { name: 'p', namespace: 'team-a', uid, generation };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec: {}, status: { agents } };
}

function openDirectory() {
  const [agents, policies] = [new Store<Agent>(), new Store<TrustPolicy>()];
  const bindings = new PodBindings<Agent>(agents, new Store<AgentPod>());
  const directory = new WatchedAgentDirectory(agents, policies, bindings);
  for (const change of agents.set(buildAgent(1, { pod: POD }))) directory.agentChanged(change);
  for (const change of policies.set(buildPolicy(1))) directory.policyChanged(change);
  /** Does this change end the long poll of the agent? */
  const endsWait = async (change: () => void): Promise<boolean> => {
    const abort = new AbortController();
    const state = directory.byUid('u');
    let isEnded = false;
    const wait = async (): Promise<void> => {
      await directory.changed({ podUid: POD.uid, state }, abort.signal);
      isEnded = !abort.signal.aborted;
    };
    const waiting = wait();
    change();
    await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    await waiting;
    return isEnded;
  };
  const setAgent = (agent: Agent) =>
    endsWait(() => agents.set(agent).forEach((change) => directory.agentChanged(change)));
  const setPolicy = (policy: TrustPolicy) =>
    endsWait(() => policies.set(policy).forEach((change) => directory.policyChanged(change)));
  const decider = () => {
    const state = directory.byUid('u');
    assert.ok(state);
    return directory.decider(state, false);
  };
  return { setAgent, setPolicy, decider };
}

describe('the agent directory', () => {
  it('a written status of a policy ends no long poll and compiles no decider again, a changed or replaced policy does', async () => {
    const { setPolicy, decider } = openDirectory();
    const before = decider();
    assert.equal(await setPolicy(buildPolicy(1, 'up', 10_000)), false);
    assert.equal(decider(), before);
    assert.equal(await setPolicy(buildPolicy(2)), true);
    const edited = decider();
    assert.notEqual(edited, before);
    assert.equal(await setPolicy(buildPolicy(2, 'another')), true);
    assert.notEqual(decider(), edited);
  });

  it('a long poll ends with another spec, pod or level of its agent, and with no other part of the status', async () => {
    const { setAgent } = openDirectory();
    assert.equal(await setAgent(buildAgent(1, { pod: POD, queue: 4, summary: '4 tokens' })), false);
    assert.equal(await setAgent(buildAgent(1, { pod: POD, level: 'restricted' })), true);
    assert.equal(await setAgent(buildAgent(2, { pod: POD, level: 'restricted' })), true);
    assert.equal(await setAgent(buildAgent(2, { level: 'restricted' })), true);
  });
});

describe('what the gateway keeps of objects of users', () => {
  it('an Agent and a TrustPolicy keep their spec, binding and spend, and nothing else that a user or the operator writes', () => {
    const filled = {
      annotations: { a: 'x'.repeat(1_000) },
      labels: { b: 'y' },
      creationTimestamp: '2026-01-01T00:00:00Z',
    };
    const agent = buildAgent(1, { pod: POD, level: 'restricted', queue: 4 });
    const pruned = pruneAgent({ ...agent, metadata: { ...agent.metadata, ...filled } });
    const { creationTimestamp } = filled;
    const metadata = { ...agent.metadata, creationTimestamp };
    assert.deepEqual(pruned, { ...agent, metadata, status: { pod: POD, level: 'restricted' } });
    const policy = buildPolicy(1);
    const { status: _status, ...rest } = policy;
    const kept = { ...rest, metadata: { ...policy.metadata, creationTimestamp } };
    assert.deepEqual(prunePolicy({ ...policy, metadata: { ...policy.metadata, ...filled } }), kept);
    const counts = { inputTokens: 7, outputTokens: 1, cost: '0.003', toolCalls: 0, networkBytes: 0 };
    const spend = [{ window: 'day' as const, start: '2026-11-22T00:00:00Z', ...counts }];
    const { status } = prunePolicy({ ...policy, status: { agents: 2, spend } });
    assert.deepEqual(status, { spend });
  });
});
