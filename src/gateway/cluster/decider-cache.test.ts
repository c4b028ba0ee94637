import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { PodBindings } from '../../identity/pod-bindings.ts';
import { Store } from '../../kube/informer/store.ts';
import type { Decider } from '../../policy/types.ts';
import { WatchedAgentDirectory } from './agent-directory.ts';

const MODEL = { primary: 'openai/a' };
const SEND = { kind: 'Message', agent: 'writer' } as const;
let versions = 0;

function anAgent(messages: string[]): Agent {
  const metadata = { name: 'analyst', namespace: 'team-a', uid: 'u', resourceVersion: String((versions += 1)) };
  const spec = { trustPolicyRef: { name: 'p' }, model: MODEL, prompt: { system: 'x' }, grants: { messages } };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata, spec };
}

function aPolicy(spec: TrustPolicy['spec']): TrustPolicy {
  const metadata = { name: 'p', namespace: 'team-a', uid: 'up', resourceVersion: String((versions += 1)) };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec };
}

function aDirectory() {
  const [agents, policies] = [new Store<Agent>(), new Store<TrustPolicy>()];
  const directory = new WatchedAgentDirectory(agents, policies, new PodBindings(agents, new Store()));
  agents.set(anAgent(['writer']));
  policies.set(aPolicy({}));
  const decider = (tainted = false, model = MODEL): Decider => {
    const state = directory.byUid('u');
    assert.ok(state);
    return directory.decider(state, tainted, { model });
  };
  return { agents, policies, decider };
}

describe('the deciders of the agent directory', () => {
  it('the deciders are compiled once for the same agent, policy, taint and models', () => {
    const { decider } = aDirectory();
    assert.equal(decider(), decider());
    assert.equal(decider(true), decider(true));
    assert.notEqual(decider(true), decider());
    assert.notEqual(decider(false, { primary: 'openai/b' }), decider());
  });

  it('the deciders follow a change of the agent at once', () => {
    const { agents, decider } = aDirectory();
    assert.equal(decider().decide(SEND).effect, 'Allow');
    agents.set(anAgent([]));
    assert.equal(decider().decide(SEND).effect, 'Deny');
  });

  it('the deciders follow a change of the policy at once', () => {
    const { policies, decider } = aDirectory();
    assert.equal(decider().decide(SEND).effect, 'Allow');
    policies.set(aPolicy({ suspend: true }));
    assert.equal(decider().decide(SEND).effect, 'Deny');
  });

  it('the deciders decide over the given model names', () => {
    const { policies, decider } = aDirectory();
    policies.set(aPolicy({ models: { allow: ['openai/b'] } }));
    const allows = (model: string) => decider(false, { primary: model }).decide({ kind: 'Model', model }).effect;
    assert.deepEqual([allows('openai/a'), allows('openai/b')], ['Deny', 'Allow']);
  });

  it('the deciders stay correct when more names are asked for than are kept', () => {
    const { decider } = aDirectory();
    const first = decider();
    for (let index = 0; index < 20; index += 1) decider(false, { primary: `openai/${index}` });
    assert.deepEqual(decider().decide(SEND), first.decide(SEND));
  });
});
