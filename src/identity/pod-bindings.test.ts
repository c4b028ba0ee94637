import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Store } from '../kube/informer/store.ts';
import type { AgentPod } from './agent-pod.ts';
import { type BoundAgent, PodBindings } from './pod-bindings.ts';

const AGENT = 'u-agent';
const OWNER = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'scout', uid: AGENT, controller: true };
let versions = 0;

function aPod(uid: string, change: Partial<AgentPod['metadata']> = {}, phase = 'Running'): AgentPod {
  const metadata = {
    name: `scout-${uid}`,
    namespace: 'team-a',
    uid,
    resourceVersion: String((versions += 1)),
    labels: { 'temper.dev/agent-uid': AGENT },
    ownerReferences: [OWNER],
    ...change,
  };
  return { metadata, status: { phase } };
}

function anAgent(podUid?: string): BoundAgent {
  const metadata = { name: 'scout', namespace: 'team-a', uid: AGENT, resourceVersion: String((versions += 1)) };
  return { metadata, ...(podUid === undefined ? {} : { status: { pod: { name: `scout-${podUid}`, uid: podUid } } }) };
}

const TERMINATING = { deletionTimestamp: '2026-05-04T12:00:00Z' };

describe('the binding of a pod', () => {
  let agents: Store<BoundAgent>;
  let pods: Store<AgentPod>;
  let bindings: PodBindings<BoundAgent>;

  beforeEach(() => {
    agents = new Store<BoundAgent>();
    pods = new Store<AgentPod>();
    bindings = new PodBindings(agents, pods);
    agents.set(anAgent());
  });

  const kinds = (...uids: string[]) => uids.map((uid) => bindings.bindingOf(uid).kind);
  /** The pod that works, as the directory sees it. */
  const working = () => {
    const [agent] = agents.list();
    return agent === undefined ? undefined : bindings.podOf(agent)?.metadata.uid;
  };

  it('a pod that names its agent is bound before the status of the agent names the pod', () => {
    pods.set(aPod('a'));
    assert.deepEqual(kinds('a'), ['bound']);
    assert.equal(working(), 'a');
    agents.set(anAgent('a'));
    assert.deepEqual(kinds('a'), ['bound']);
  });

  it('a pod is bound only by label and controller together, in the namespace of its agent', () => {
    pods.set(aPod('a', { ownerReferences: [] }));
    pods.set(aPod('b', { labels: {} }));
    pods.set(aPod('c', { ownerReferences: [{ ...OWNER, controller: false }] }));
    pods.set(aPod('d', { ownerReferences: [{ ...OWNER, uid: 'u-other' }] }));
    pods.set(aPod('e', { namespace: 'team-b' }));
    assert.deepEqual(kinds('a', 'b', 'c', 'd', 'e'), Array(5).fill('unbound'));
    // Nor does the status alone bind a pod.
    agents.set(anAgent('b'));
    assert.deepEqual(kinds('b'), ['unbound']);
    assert.equal(working(), undefined);
  });

  it('two living pods are in conflict until one is confirmed, which then works', () => {
    pods.set(aPod('a'));
    pods.set(aPod('b'));
    assert.deepEqual(kinds('a', 'b'), ['conflict', 'conflict']);
    assert.equal(working(), undefined);
    agents.set(anAgent('b'));
    assert.deepEqual(kinds('a', 'b'), ['unbound', 'bound']);
    // A confirmation of a pod that does not exist any more confirms nothing.
    agents.set(anAgent('gone'));
    assert.deepEqual(kinds('a', 'b'), ['conflict', 'conflict']);
  });

  it('a confirmed pod works while it terminates, until its successor exists', () => {
    agents.set(anAgent('a'));
    pods.set(aPod('a', TERMINATING));
    assert.deepEqual(kinds('a'), ['bound']);
    pods.set(aPod('b'));
    assert.deepEqual(kinds('a', 'b'), ['unbound', 'bound']);
    assert.equal(working(), 'b');
  });

  it('a terminating pod that the status never confirmed, and an ended one, do not work', () => {
    pods.set(aPod('a', TERMINATING));
    assert.deepEqual(kinds('a'), ['unbound']);
    for (const phase of ['Failed', 'Succeeded']) {
      pods.set(aPod('a', {}, phase));
      agents.set(anAgent('a'));
      assert.deepEqual(kinds('a'), ['unbound']);
    }
    pods.set(aPod('b'));
    assert.deepEqual(kinds('b'), ['bound']);
  });

  it('a pod that one agent labels and another confirms works for neither', () => {
    pods.set(aPod('a'));
    agents.set({ ...anAgent('a'), metadata: { ...anAgent().metadata, name: 'thief', uid: 'u-thief' } });
    assert.deepEqual(kinds('a'), ['conflict']);
  });

  it('at no moment do two pods of an agent work, whatever its pods and its status are', () => {
    const phases = ['Running', 'Failed'];
    const versionsOf = (uid: string) =>
      phases.flatMap((phase) => [{}, TERMINATING].map((change) => aPod(uid, change, phase)));
    for (const one of versionsOf('a')) {
      for (const other of versionsOf('b')) {
        for (const confirmed of [undefined, 'a', 'b', 'gone']) {
          pods.replace([one, other]);
          agents.replace([anAgent(confirmed)]);
          const bound = kinds('a', 'b').filter((kind) => kind === 'bound');
          assert.ok(bound.length <= 1, JSON.stringify([one, other, confirmed]));
        }
      }
    }
  });
});
