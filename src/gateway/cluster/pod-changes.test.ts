import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { AgentPod } from '../../identity/agent-pod.ts';
import { PodBindings } from '../../identity/pod-bindings.ts';
import { type Change, Store } from '../../kube/informer/store.ts';
import { WatchedAgentDirectory } from './agent-directory.ts';

const UID = 'u-agent';
const OWNER = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'analyst', uid: UID, controller: true };
let versions = 0;

function aPod(uid: string, change: Partial<AgentPod['metadata']> = {}, podIP = '10.0.0.7'): AgentPod {
  const bound = { labels: { 'temper.dev/agent-uid': UID }, ownerReferences: [OWNER] };
  const resourceVersion = String((versions += 1));
  return { metadata: { name: uid, namespace: 'team-a', uid, resourceVersion, ...bound, ...change }, status: { podIP } };
}

const WARM = { labels: {}, ownerReferences: [] };
const TERMINATING = { deletionTimestamp: '2026-05-04T12:00:00Z' };

function anAgent(): Agent {
  const metadata = { name: 'analyst', namespace: 'team-a', uid: UID, resourceVersion: String((versions += 1)) };
  const spec = { trustPolicyRef: { name: 'p' }, model: { primary: 'openai/a' }, prompt: { system: 'x' } };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata, spec };
}

describe('the changes that the agent directory announces', () => {
  let agents: Store<Agent>;
  let pods: Store<AgentPod>;
  let directory: WatchedAgentDirectory;

  beforeEach(() => {
    agents = new Store<Agent>();
    pods = new Store<AgentPod>();
    directory = new WatchedAgentDirectory(agents, new Store<TrustPolicy>(), new PodBindings(agents, pods));
  });

  const announcePods = (changes: readonly Change<AgentPod>[]) => changes.forEach((one) => directory.podChanged(one));
  const setAgent = () => agents.set(anAgent()).forEach((one) => directory.agentChanged(one));
  const setPod = (pod: AgentPod) => announcePods(pods.set(pod));

  /** Does the step wake a request that waits for the pod, or for the agent? */
  async function wakes(of: { podUid?: string; agent?: true }, step: () => void): Promise<boolean> {
    const state = of.agent === true ? directory.byUid(UID) : undefined;
    let isAwake = false;
    const stopping = new AbortController();
    const { podUid } = of;
    const waiting = directory
      .changed({ ...(podUid === undefined ? {} : { podUid }), state }, stopping.signal)
      .then(() => (isAwake = !stopping.signal.aborted));
    step();
    await Promise.resolve();
    await Promise.resolve();
    stopping.abort();
    await waiting;
    return isAwake;
  }

  it('a claim wakes the warm pod and the requests that wait for the agent', async () => {
    setAgent();
    setPod(aPod('a', WARM));
    assert.equal(await wakes({ podUid: 'a' }, () => setPod(aPod('a'))), true);
    setPod(aPod('a', WARM));
    assert.equal(await wakes({ agent: true }, () => setPod(aPod('a'))), true);
    assert.equal(directory.byUid(UID)?.podUid, 'a');
  });

  it('an agent that the cache receives after its pod wakes that pod', async () => {
    setPod(aPod('a'));
    assert.equal(await wakes({ podUid: 'a' }, setAgent), true);
  });

  it('the successor of a pod wakes that pod, and so does its deletion', async () => {
    setAgent();
    setPod(aPod('a', TERMINATING));
    assert.equal(await wakes({ podUid: 'a' }, () => setPod(aPod('b'))), true);
    assert.equal(directory.byUid(UID)?.podUid, 'b');
    assert.equal(await wakes({ podUid: 'a' }, () => announcePods(pods.delete('team-a/a'))), true);
  });

  it('a change of the tools of its namespace wakes the requests that wait for an agent, and those of another namespace do not', async () => {
    setAgent();
    setPod(aPod('a'));
    assert.equal(await wakes({ podUid: 'a', agent: true }, () => directory.toolsChanged('team-a')), true);
    assert.equal(await wakes({ podUid: 'a', agent: true }, () => directory.toolsChanged('team-b')), false);
  });

  it('a status of the kubelet and the pod of another agent wake nothing', async () => {
    setAgent();
    setPod(aPod('a'));
    assert.equal(await wakes({ podUid: 'a', agent: true }, () => setPod(aPod('a', {}, '10.0.0.8'))), false);
    const other = { labels: { 'temper.dev/agent-uid': 'u-2' }, ownerReferences: [{ ...OWNER, uid: 'u-2' }] };
    assert.equal(await wakes({ podUid: 'a', agent: true }, () => setPod(aPod('z', other))), false);
  });
});
