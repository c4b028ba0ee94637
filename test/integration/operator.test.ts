import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS, NAMESPACE_OBJECTS, RELEASE_OBJECTS } from '../../src/api/cluster.ts';
import type { KubeRequest } from '../../src/kube/transport.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';
import { podName } from '../../src/operator/agent/pod-name.ts';
import {
  CONFIG,
  NO_METRICS,
  RELEASE,
  type Running,
  type World,
  agentOf,
  counting,
  eventually,
  isWriteRequest,
  messageOfReady,
  policyOf,
  readyReason,
  startOperator,
  startWorld,
} from './operator-world.ts';

const never = new AbortController().signal;
const POOLED = { ...CONFIG.sandboxClasses[0], pool: [{ namespace: 'pooled', size: 3 }] };
const isRunning = (agent: StoredAgent) => readyReason(agent) === 'Running';
const because = (reason: string) => (agent: StoredAgent) => readyReason(agent) === reason;

describe('an operator on a real API server', () => {
  let world: World;
  let operator: Running;
  const seen: KubeRequest[] = [];
  let reconciles = 0;

  const writes = () => seen.filter(isWriteRequest);
  const get = (type: (typeof TYPES)[keyof typeof TYPES], namespace: string, name: string) =>
    world.client.get<PlainObject>(type, { namespace, name }, never);
  const patch = (name: string, namespace: string, spec: object) =>
    world.client.patch(TYPES.agents, { namespace, name }, { spec }, never);

  before(async () => {
    world = await startWorld({ controllerManager: true });
    await world.namespace('pooled');
    const metrics = {
      ...NO_METRICS,
      count(name: string, labels: Readonly<Record<string, string>>, by = 1) {
        if (name === 'controller_runtime_reconcile_total' && labels['controller'] === 'agents') reconciles += by;
      },
    };
    const config = { ...CONFIG, sandboxClasses: [POOLED] } as typeof CONFIG;
    operator = await startOperator(world, config, { metrics, wrap: (transport) => counting(transport, seen) });
  });

  after(async () => {
    await operator?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  it('brings an agent to Ready, and everything its pod relies on before it', async () => {
    await world.namespace('team-a');
    await world.apply(policyOf('team-a', { quotas: { agents: 1000, cpu: '8', memory: '16Gi' } }));
    await world.apply(agentOf('team-a', 'analyst'));
    const agent = await world.agentWith('team-a', 'analyst', 'runs', isRunning);
    const [pod, ...others] = await world.pods('team-a');
    assert.deepEqual(others, []);
    assert.equal(agent.status?.pod?.uid, pod?.metadata.uid);
    assert.equal(agent.status?.level, 'sandboxed');
    const doors = await get(TYPES.configMaps, 'team-a', NAMESPACE_OBJECTS.doors);
    assert.match(JSON.stringify(doors?.['data']), /"gateway":"https:\/\/10\.96\.\d+\.\d+:8443"/);
    const quota = await get(TYPES.resourceQuotas, 'team-a', NAMESPACE_OBJECTS.resourceQuota);
    const { hard } = (quota?.['spec'] ?? {}) as { hard?: object };
    assert.deepEqual(hard, { pods: '1k', 'requests.cpu': '8', 'limits.memory': '16Gi' });
    assert.ok(await get(TYPES.secrets, RELEASE, RELEASE_OBJECTS.gatewayCertificate));
    const made = seen.filter(isWriteRequest).map(({ path }) => path);
    const firstPod = made.findIndex((path) => path.includes('/namespaces/team-a/pods'));
    const closed = made.findIndex((path) => path.includes(NAMESPACE_OBJECTS.denyAll));
    assert.ok(closed >= 0 && closed < firstPod, made.join('\n'));
  });

  it('writes at most five times for an agent from created to Ready, and reconciles it at most six times', async () => {
    await world.namespace('many');
    await world.apply(policyOf('many'));
    await world.apply(agentOf('many', 'first'));
    await world.agentWith('many', 'first', 'runs', isRunning);
    await sleep(500);
    const [writesBefore, reconcilesBefore] = [writes().length, reconciles];
    const names = Array.from({ length: 20 }, (_, index) => `agent-${index}`);
    await Promise.all(names.map((name) => world.apply(agentOf('many', name))));
    for (const name of names) await world.agentWith('many', name, 'runs', isRunning);
    await sleep(1_500);
    const made = writes()
      .slice(writesBefore)
      .filter(({ path }) => path.includes('/namespaces/many/'));
    assert.ok(made.length <= names.length * 5, made.map(({ method, path }) => `${method} ${path}`).join('\n'));
    assert.ok(reconciles - reconcilesBefore <= names.length * 6, `${reconciles - reconcilesBefore} reconciles`);
    assert.equal((await world.pods('many')).length, names.length + 1);
  });

  it('writes and lists nothing while nothing changes', async () => {
    // The count of agents in the policies' status may lag.
    await sleep(11_000);
    const before = seen.length;
    await sleep(3_000);
    const calls = seen.slice(before).map(({ method, path }) => `${method} ${path}`);
    const reads = calls.filter((call) => /^GET .*\/(namespaces|secrets|services)\/[^/]+$/.test(call));
    assert.deepEqual(
      calls.filter((call) => !reads.includes(call)),
      [],
    );
  });

  it('gives an agent a warm pod for three writes, its refill among them', async () => {
    const warm = async () =>
      (await world.pods('pooled')).filter((pod) => pod.metadata.labels?.[LABELS.agentUid] === undefined);
    const isReady = (pod: Pod) => pod.status?.conditions?.some(({ type }) => type === 'Ready') === true;
    await eventually(warm, (pods) => pods.filter(isReady).length === 3, 'three warm pods');
    await world.apply(policyOf('pooled'));
    await sleep(500);
    const before = writes().length;
    await world.apply(agentOf('pooled', 'quick'));
    const agent = await world.agentWith('pooled', 'quick', 'runs', isRunning);
    await eventually(warm, (pods) => pods.filter(isReady).length === 3, 'the refill');
    await sleep(1_000);
    const made = writes()
      .slice(before)
      .map(({ method, path }) => `${method} ${path}`);
    assert.ok(made.length <= 3, made.join('\n'));
    assert.match(agent.status?.pod?.name ?? '', /^warm-standard-/);
    const pod = (await world.pods('pooled')).find(({ metadata }) => metadata.uid === agent.status?.pod?.uid);
    assert.equal(pod?.metadata.labels?.[LABELS.agentUid], agent.metadata.uid);
    assert.equal(pod?.metadata.ownerReferences?.[0]?.uid, agent.metadata.uid);
  });

  it('suspends, says so, stays Ready, and resumes', async () => {
    await patch('analyst', 'team-a', { suspend: true });
    const asleep = await world.agentWith('team-a', 'analyst', 'is suspended', because('Suspended'));
    assert.equal(asleep.status?.pod, undefined);
    const active = asleep.status?.conditions?.find(({ type }) => type === 'Active');
    assert.deepEqual([active?.status, active?.reason], ['False', 'Suspended']);
    assert.equal(asleep.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True');
    await eventually(
      () => world.pods('team-a'),
      (pods) => pods.length === 0,
      'no pod',
    );
    await patch('analyst', 'team-a', { suspend: false });
    await world.agentWith('team-a', 'analyst', 'runs again', isRunning);
  });

  it('stops every agent of a policy by its kill switch', async () => {
    const policy = { namespace: 'team-a', name: 'standard' };
    await world.client.patch(TYPES.trustPolicies, policy, { spec: { suspend: true } }, never);
    const stopped = await world.agentWith('team-a', 'analyst', 'is stopped', because('Suspended'));
    assert.match(messageOfReady(stopped), /kill switch of TrustPolicy "standard"/);
    await world.client.patch(TYPES.trustPolicies, policy, { spec: { suspend: false } }, never);
    await world.agentWith('team-a', 'analyst', 'runs again', isRunning);
  });

  it('says which policy is missing, and goes on when it is made', async () => {
    await world.apply(agentOf('team-a', 'orphan', { trustPolicyRef: { name: 'later' } }));
    const orphan = await world.agentWith('team-a', 'orphan', 'waits', because('TrustPolicyNotFound'));
    assert.equal(
      messageOfReady(orphan),
      'TrustPolicy "later" does not exist in namespace "team-a"; create it or change spec.trustPolicyRef',
    );
    await world.apply(policyOf('team-a', {}, 'later'));
    await world.agentWith('team-a', 'orphan', 'runs', isRunning);
  });

  it('lets the oldest agents of a policy in, and the next one when one goes', async () => {
    await world.apply(policyOf('team-a', { quotas: { agents: 1 } }, 'narrow'));
    await world.apply(agentOf('team-a', 'older', { trustPolicyRef: { name: 'narrow' } }));
    await world.agentWith('team-a', 'older', 'runs', isRunning);
    await sleep(1_100);
    await world.apply(agentOf('team-a', 'younger', { trustPolicyRef: { name: 'narrow' } }));
    await world.agentWith('team-a', 'younger', 'waits', because('AgentQuotaExceeded'));
    await world.client.delete(TYPES.agents, { namespace: 'team-a', name: 'older' }, {}, never);
    await world.agentWith('team-a', 'younger', 'runs', isRunning);
  });

  it('refuses a grant beyond the policy, and takes the pod away until it is narrowed', async () => {
    await world.apply(agentOf('team-a', 'greedy', { grants: { network: ['example.com'] } }));
    const greedy = await world.agentWith('team-a', 'greedy', 'is refused', because('GrantDenied'));
    assert.match(
      messageOfReady(greedy),
      /^grants\.network "example\.com" exceeds policy "standard" \(egress\.allow is empty\)/,
    );
    await patch('greedy', 'team-a', { grants: null });
    await world.agentWith('team-a', 'greedy', 'runs', isRunning);
  });

  it('takes no pod for its own that somebody else made under its name', async () => {
    await world.namespace('squat');
    await world.apply(policyOf('squat'));
    await world.apply(agentOf('squat', 'target', { suspend: true }));
    const { metadata } = await world.agentWith('squat', 'target', 'is suspended', because('Suspended'));
    const name = podName({ name: 'target', uid: metadata.uid }, undefined);
    const account = { namespace: 'squat', name: 'default' };
    await eventually(
      () => world.client.get(TYPES.serviceAccounts, account, never),
      (found) => found !== undefined,
      'the default account',
    );
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'squat' },
      spec: { containers: [{ name: 'x', image: 'x' }] },
    };
    const squatter = await world.client.create<Pod>(TYPES.pods, pod, never);
    await patch('target', 'squat', { suspend: false });
    const target = await world.agentWith('squat', 'target', 'says so', because('PodNameTaken'));
    assert.match(messageOfReady(target), new RegExp(`pod "${name}" exists`));
    assert.equal(target.status?.pod, undefined);
    const [still] = await world.pods('squat');
    assert.equal(still?.metadata.uid, squatter.metadata.uid);
    assert.equal(still?.metadata.deletionTimestamp, undefined);
    await world.client.delete(TYPES.pods, { namespace: 'squat', name }, { gracePeriodSeconds: 0 }, never);
    await world.agentWith('squat', 'target', 'runs', isRunning);
  });

  it('replaces a pod that is deleted or evicted, under another uid', async () => {
    const before = await world.agent('many', 'first');
    const ref = { namespace: 'many', name: before.status?.pod?.name ?? '' };
    await world.client.delete(TYPES.pods, ref, { gracePeriodSeconds: 0 }, never);
    const second = await world.agentWith('many', 'first', 'has another pod', (agent) => {
      return isRunning(agent) && agent.status?.pod?.uid !== before.status?.pod?.uid;
    });
    const evicted = { status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory.' } };
    const at = { namespace: 'many', name: second.status?.pod?.name ?? '' };
    await world.client.patch(TYPES.pods, at, evicted, never, { subresource: 'status' });
    await world.agentWith('many', 'first', 'has a third pod', (agent) => {
      return isRunning(agent) && agent.status?.pod?.uid !== second.status?.pod?.uid;
    });
  });

  it('makes again what somebody removed or changed beneath the pods', async () => {
    for (const [type, name] of [
      [TYPES.networkPolicies, NAMESPACE_OBJECTS.denyAll],
      [TYPES.networkPolicies, NAMESPACE_OBJECTS.allowGateway],
      [TYPES.resourceQuotas, NAMESPACE_OBJECTS.resourceQuota],
      [TYPES.serviceAccounts, NAMESPACE_OBJECTS.agentServiceAccount],
      [TYPES.configMaps, NAMESPACE_OBJECTS.doors],
    ] as const) {
      const known = await get(type, 'team-a', name);
      await world.client.delete(type, { namespace: 'team-a', name }, {}, never);
      await eventually(
        () => get(type, 'team-a', name),
        (found) => found !== undefined && found.metadata.uid !== known?.metadata.uid,
        `${type.kind} ${name} again`,
      );
    }
    const opened = { spec: { egress: [{}] } };
    const ref = { namespace: 'team-a', name: NAMESPACE_OBJECTS.denyAll };
    await world.client.patch(TYPES.networkPolicies, ref, opened, never);
    await eventually(
      () => get(TYPES.networkPolicies, ref.namespace, ref.name),
      (found) => !JSON.stringify(found?.['spec']).includes('"egress"'),
      'closed again',
    );
  });

  it('folds the number of agents into the status of their policy', async () => {
    const count = async () => {
      const found = await get(TYPES.trustPolicies, 'many', 'standard');
      return (found?.['status'] as { agents?: number } | undefined)?.agents;
    };
    await eventually(count, (agents) => agents === 21, '21 agents');
  });

  it('tells each transition once, as an Event on the agent', async () => {
    const events = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
    interface EventObject extends PlainObject {
      reason: string;
      involvedObject: { name: string };
    }
    const list = () => world.client.list<EventObject>(events, { namespace: 'many' }, never);
    const of = (all: EventObject[]) => all.filter(({ involvedObject }) => involvedObject.name === 'agent-3');
    const told = await eventually(list, (all) => of(all).length >= 2, 'events of agent-3');
    assert.deepEqual(
      of(told)
        .map(({ reason }) => reason)
        .sort(),
      ['Running', 'Starting'],
    );
  });
});
