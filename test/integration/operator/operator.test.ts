import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS, NAMESPACE_OBJECTS, RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { podName } from '../../../src/operator/pods/pod-name.ts';
import {
  RELEASE_NAMESPACE,
  type ApiServerFixture,
  startApiServerFixture,
} from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, readyMessage, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import {
  OPERATOR_CONFIG,
  type RunningOperator,
  recordingTransport,
  isWriteRequest,
  startOperator,
} from '../../support/operator/start-operator.ts';
import { kstatusOf } from '../../support/kstatus.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

const GATEWAY_LABELS = { 'app.kubernetes.io/component': 'gateway' };
const EGRESS_LABELS = { 'app.kubernetes.io/component': 'egress' };
const POOLED = { ...OPERATOR_CONFIG.sandboxClasses[0], pool: [{ namespace: 'pooled', size: 3 }] };
const CONNECTIONS = [
  { name: 'rates', hosts: ['rates.example.com:443'], namespaces: ['catalogue'] },
  { name: 'payroll', hosts: ['rates.example.com:443'], namespaces: ['finance'] },
];
const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const isRunning = (agent: StoredAgent) => readyReason(agent) === 'Running';
const hasReadyReason = (reason: string) => (agent: StoredAgent) => readyReason(agent) === reason;

describe('an operator on a real API server', () => {
  let apiServer: ApiServerFixture;
  let operator: RunningOperator;
  const apiRequests: KubeRequest[] = [];
  let reconciles = 0;

  const writes = () => apiRequests.filter(isWriteRequest);
  const get = (type: (typeof TYPES)[keyof typeof TYPES], namespace: string, name: string) =>
    apiServer.client.get<PlainObject>(type, { namespace, name }, NEVER_ABORTED);
  const patch = (name: string, namespace: string, spec: object) =>
    apiServer.client.patch(TYPES.agents, { namespace, name }, { spec }, NEVER_ABORTED);

  /** The reasons of the Events of an agent, as soon as there are this many. */
  const eventsOf = async (namespace: string, agent: string, expected: number): Promise<string[]> => {
    interface EventObject extends PlainObject {
      reason: string;
      involvedObject: { name: string };
    }
    const read = async () => {
      const all = await apiServer.client.list<EventObject>(TYPES.events, { namespace }, NEVER_ABORTED);
      return all.filter(({ involvedObject }) => involvedObject.name === agent).map(({ reason }) => reason);
    };
    return pollValue(`${expected} Events of ${agent}`, read, (reasons) => reasons.length >= expected);
  };

  /** The number of agents in the status of their policy. */
  const agentsOfMany = async (): Promise<number | undefined> => {
    const found = await get(TYPES.trustPolicies, 'many', 'standard');
    return (found?.['status'] as { agents?: number } | undefined)?.agents;
  };

  before(async () => {
    apiServer = await startApiServerFixture({ controllerManager: true });
    await apiServer.createNamespace('pooled');
    const metrics = {
      ...NO_METRICS,
      count(name: string, labels: Readonly<Record<string, string>>, by = 1) {
        if (name === 'controller_runtime_reconcile_total' && labels['controller'] === 'agents') reconciles += by;
      },
    };
    const service = RELEASE_OBJECTS.egress;
    await apiServer.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: service, namespace: RELEASE_NAMESPACE },
      spec: { ports: [{ port: 8445 }], selector: EGRESS_LABELS },
    });
    const egress = { service, podLabels: EGRESS_LABELS };
    const config = {
      ...OPERATOR_CONFIG,
      egress,
      connections: CONNECTIONS,
      sandboxClasses: [POOLED],
    } as typeof OPERATOR_CONFIG;
    operator = await startOperator(apiServer, config, {
      metrics,
      wrap: (transport) => recordingTransport(transport, apiRequests),
    });
  });

  after(async () => {
    await operator?.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  it('an agent becomes Ready, and the objects its pod needs are created first', async () => {
    await apiServer.createNamespace('team-a');
    await apiServer.apply(buildTrustPolicy('team-a', { quotas: { agents: 1000, cpu: '8', memory: '16Gi' } }));
    await apiServer.apply(buildAgent('team-a', 'analyst'));
    const agent = await apiServer.waitForAgent('team-a', 'analyst', 'runs', isRunning);
    const [pod, ...others] = await apiServer.listPods('team-a');
    assert.deepEqual(others, []);
    assert.equal(agent.status?.pod?.uid, pod?.metadata.uid);
    assert.equal(agent.status?.level, 'sandboxed');
    const endpoints = await get(TYPES.configMaps, 'team-a', NAMESPACE_OBJECTS.endpoints);
    assert.match(JSON.stringify(endpoints?.['data']), /"gateway":"https:\/\/10\.96\.\d+\.\d+:8443"/);
    const quota = await get(TYPES.resourceQuotas, 'team-a', NAMESPACE_OBJECTS.resourceQuota);
    const { hard } = (quota?.['spec'] ?? {}) as { hard?: object };
    assert.deepEqual(hard, { pods: '1k', 'requests.cpu': '8', 'limits.memory': '16Gi' });
    assert.ok(await get(TYPES.secrets, RELEASE_NAMESPACE, RELEASE_OBJECTS.gatewayCertificate));
    const made = apiRequests.filter(isWriteRequest).map(({ path }) => path);
    const firstPod = made.findIndex((path) => path.includes('/namespaces/team-a/pods'));
    const policies = made.slice(0, firstPod).filter((path) => path.includes('/namespaces/team-a/networkpolicies'));
    assert.equal(policies.length, 3, made.join('\n'));
  });

  it('an agent reaches the egress proxy of the release, with a token for it', async () => {
    const endpoints = await get(TYPES.configMaps, 'team-a', NAMESPACE_OBJECTS.endpoints);
    assert.match(JSON.stringify(endpoints?.['data']), /"egress":"https:\/\/10\.96\.\d+\.\d+:8445"/);
    assert.ok(await get(TYPES.secrets, RELEASE_NAMESPACE, RELEASE_OBJECTS.egressCertificate));
    for (const [name, port, labels] of [
      [NAMESPACE_OBJECTS.allowGateway, 8443, GATEWAY_LABELS],
      [NAMESPACE_OBJECTS.allowEgress, 8445, EGRESS_LABELS],
    ] as const) {
      const policy = await get(TYPES.networkPolicies, 'team-a', name);
      assert.ok(policy !== undefined, name);
      const { egress } = policy['spec'] as { egress: { ports: { port: number }[]; to: { podSelector: object }[] }[] };
      assert.deepEqual(
        egress.map(({ to, ports }) => [to[0]?.podSelector, ports[0]?.port]),
        [[{ matchLabels: labels }, port]],
      );
    }
    const [pod] = await apiServer.listPods('team-a');
    assert.match(JSON.stringify(pod), /"audience":"temper-gateway".*"audience":"temper-egress"/);
  });

  it('a new agent costs one pod, one status and one Event, and at most six reconciles', async () => {
    await apiServer.createNamespace('many');
    await apiServer.apply(buildTrustPolicy('many'));
    await apiServer.apply(buildAgent('many', 'first'));
    await apiServer.waitForAgent('many', 'first', 'runs', isRunning);
    // This Event is the last write of an agent that runs.
    await pollValue(
      'its Event',
      () => eventsOf('many', 'first', 1),
      (reasons) => reasons.includes('Running'),
    );
    const [writesBefore, reconcilesBefore] = [writes().length, reconciles];
    const names = Array.from({ length: 20 }, (_, index) => `agent-${index}`);
    const writesOfMany = () =>
      writes()
        .slice(writesBefore)
        // The count of agents in the status of their policy follows ten seconds later, which may be now.
        .filter(({ path }) => path.includes('/namespaces/many/') && !path.includes('/trustpolicies/'));
    // On a slow machine a pod may take longer than the first status waits: one more status and one more Event.
    const late = () =>
      writesOfMany().filter(({ body }) => JSON.stringify(body ?? null).includes('"reason":"Starting"')).length;
    await Promise.all(names.map((name) => apiServer.apply(buildAgent('many', name))));
    for (const name of names) await apiServer.waitForAgent('many', name, 'runs', isRunning);
    await poll('the writes of 20 agents', () => writesOfMany().length >= names.length * 3 + late());
    // Further writes would follow at once.
    await sleep(1_000);
    const made = writesOfMany();
    const expected = names.length * 3 + late();
    assert.equal(made.length, expected, made.map(({ method, path }) => `${method} ${path}`).join('\n'));
    assert.ok(reconciles - reconcilesBefore <= names.length * 6, `${reconciles - reconcilesBefore} reconciles`);
    assert.equal((await apiServer.listPods('many')).length, names.length + 1);
  });

  it('a Capability has one status, which follows the other Capabilities of its namespace, and the table of kubectl shows it', async () => {
    await apiServer.createNamespace('catalogue');
    const set = (name: string, spec: object) =>
      apiServer.apply({
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Capability',
        metadata: { name, namespace: 'catalogue' },
        spec: { type: 'Tool', description: 'Finds.', ...spec },
      });
    const tool = (name: string) => ({ name, category: 'web', inputSchema: { type: 'object' } });
    const backend = (connection: string) => ({ http: { url: 'https://rates.example.com/v1', connection } });
    const rowOf = async (name: string): Promise<string> => {
      const path = `/apis/temper.dev/v1alpha1/namespaces/catalogue/capabilities/${name}`;
      const { body } = await apiServer.plane.admin.call('GET', path, { accept: TABLE });
      const names = (body['columnDefinitions'] as { name: string }[]).map((column) => column.name);
      const [row] = body['rows'] as { cells: unknown[] }[];
      return ['Available', 'Reason'].map((column) => row?.cells[names.indexOf(column)]).join(' ');
    };
    const shows = (name: string, expected: string) =>
      pollValue(
        `${name}: ${expected}`,
        () => rowOf(name),
        (row) => row === expected,
      );
    await set('rates', { tool: tool('rates'), backend: backend('rates') });
    await set('more-rates', { tool: tool('more_rates'), backend: backend('rates'), requiredTools: ['helper_tool'] });
    await set('payroll', { tool: tool('payroll'), backend: backend('payroll') });
    await shows('rates', 'True Callable');
    await shows('more-rates', 'False ToolMissing');
    await shows('payroll', 'False ConnectionMissing');
    await set('helper-tool', { tool: tool('helper_tool'), backend: { http: { url: 'https://a.example.com/' } } });
    await shows('more-rates', 'True Callable');
    const stored = await get(TYPES.capabilities, 'catalogue', 'more-rates');
    assert.deepEqual(kstatusOf(stored as never), 'Current');
    assert.deepEqual(
      writes().filter(({ path }) => path.includes('/namespaces/catalogue/capabilities/')).length,
      5,
      'one write for each status',
    );
    assert.deepEqual((await eventsOf('catalogue', 'more-rates', 2)).sort(), ['Callable', 'ToolMissing']);
  });

  it('the operator neither writes nor lists while nothing changes', async () => {
    // The agent count in the status of policies is written up to ten seconds later, and last.
    await pollValue('21 agents', agentsOfMany, (agents) => agents === 21);
    await sleep(1_000);
    const before = apiRequests.length;
    await sleep(3_000);
    const calls = apiRequests.slice(before).map(({ method, path }) => `${method} ${path}`);
    const reads = calls.filter((call) => /^GET .*\/(namespaces|secrets|services)\/[^/]+$/.test(call));
    assert.deepEqual(
      calls.filter((call) => !reads.includes(call)),
      [],
    );
  });

  it('claiming a warm pod needs one request until the pod is bound, and three writes with status and refill', async () => {
    const warm = async () =>
      (await apiServer.listPods('pooled')).filter((pod) => pod.metadata.labels?.[LABELS.agentUid] === undefined);
    const isReady = (pod: Pod) => pod.status?.conditions?.some(({ type }) => type === 'Ready') === true;
    await pollValue('three warm pods', warm, (pods) => pods.filter(isReady).length === 3);
    await apiServer.apply(buildTrustPolicy('pooled'));
    await sleep(500);
    const [before, allBefore] = [writes().length, apiRequests.length];
    await apiServer.apply(buildAgent('pooled', 'quick'));
    const agent = await apiServer.waitForAgent('pooled', 'quick', 'runs', isRunning);
    await pollValue('the refill', warm, (pods) => pods.filter(isReady).length === 3);
    await sleep(1_000);
    const made = writes()
      .slice(before)
      .map(({ method, path }) => `${method} ${path}`);
    assert.ok(made.length <= 3, made.join('\n'));
    // The claim binds the pod; nothing is read or written before it.
    const [first] = apiRequests.slice(allBefore).filter(({ path }) => !path.includes('/leases'));
    assert.match(`${first?.method} ${first?.path}`, /^PATCH .*\/namespaces\/pooled\/pods\/warm-standard-/);
    assert.match(agent.status?.pod?.name ?? '', /^warm-standard-/);
    const pod = (await apiServer.listPods('pooled')).find(({ metadata }) => metadata.uid === agent.status?.pod?.uid);
    assert.equal(pod?.metadata.labels?.[LABELS.agentUid], agent.metadata.uid);
    assert.equal(pod?.metadata.ownerReferences?.[0]?.uid, agent.metadata.uid);
  });

  it('a suspended agent loses its pod, reports it, stays Ready, and resumes', async () => {
    await patch('analyst', 'team-a', { suspend: true });
    const suspended = await apiServer.waitForAgent('team-a', 'analyst', 'is suspended', hasReadyReason('Suspended'));
    assert.equal(suspended.status?.pod, undefined);
    const active = suspended.status?.conditions?.find(({ type }) => type === 'Active');
    assert.deepEqual([active?.status, active?.reason], ['False', 'Suspended']);
    assert.equal(suspended.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True');
    await pollValue(
      'no pod',
      () => apiServer.listPods('team-a'),
      (pods) => pods.length === 0,
    );
    await patch('analyst', 'team-a', { suspend: false });
    await apiServer.waitForAgent('team-a', 'analyst', 'runs again', isRunning);
  });

  it('the kill switch of a policy stops its agents', async () => {
    const policy = { namespace: 'team-a', name: 'standard' };
    await apiServer.client.patch(TYPES.trustPolicies, policy, { spec: { suspend: true } }, NEVER_ABORTED);
    const stopped = await apiServer.waitForAgent('team-a', 'analyst', 'is stopped', hasReadyReason('Suspended'));
    assert.match(readyMessage(stopped), /kill switch of TrustPolicy "standard"/);
    await apiServer.client.patch(TYPES.trustPolicies, policy, { spec: { suspend: false } }, NEVER_ABORTED);
    await apiServer.waitForAgent('team-a', 'analyst', 'runs again', isRunning);
  });

  it('an agent reports its missing policy and starts when the policy is created', async () => {
    await apiServer.apply(buildAgent('team-a', 'orphan', { trustPolicyRef: { name: 'later' } }));
    const orphan = await apiServer.waitForAgent('team-a', 'orphan', 'waits', hasReadyReason('TrustPolicyNotFound'));
    assert.equal(
      readyMessage(orphan),
      'TrustPolicy "later" does not exist in namespace "team-a"; create it or change spec.trustPolicyRef',
    );
    await apiServer.apply(buildTrustPolicy('team-a', {}, 'later'));
    await apiServer.waitForAgent('team-a', 'orphan', 'runs', isRunning);
  });

  it('the oldest agents of a policy run within its quota, and the next one when an agent is deleted', async () => {
    await apiServer.apply(buildTrustPolicy('team-a', { quotas: { agents: 1 } }, 'narrow'));
    await apiServer.apply(buildAgent('team-a', 'older', { trustPolicyRef: { name: 'narrow' } }));
    const older = await apiServer.waitForAgent('team-a', 'older', 'runs', isRunning);
    // Creation times have whole seconds.
    const nextSecond = Date.parse(older.metadata.creationTimestamp) + 1_000;
    await poll('the second after the creation', () => Date.now() >= nextSecond);
    await apiServer.apply(buildAgent('team-a', 'younger', { trustPolicyRef: { name: 'narrow' } }));
    await apiServer.waitForAgent('team-a', 'younger', 'waits', hasReadyReason('AgentQuotaExceeded'));
    await apiServer.client.delete(TYPES.agents, { namespace: 'team-a', name: 'older' }, {}, NEVER_ABORTED);
    await apiServer.waitForAgent('team-a', 'younger', 'runs', isRunning);
  });

  it('an agent whose grants exceed the policy has no pod until the grants are narrowed', async () => {
    await apiServer.apply(buildAgent('team-a', 'greedy', { grants: { network: ['example.com'] } }));
    const greedy = await apiServer.waitForAgent('team-a', 'greedy', 'is refused', hasReadyReason('GrantDenied'));
    assert.match(
      readyMessage(greedy),
      /^grants\.network "example\.com" exceeds policy "standard" \(egress\.allow is empty\)/,
    );
    await patch('greedy', 'team-a', { grants: null });
    await apiServer.waitForAgent('team-a', 'greedy', 'runs', isRunning);
  });

  it('an agent with looser constraints than its policy has no pod until they are as tight', async () => {
    await apiServer.apply(buildTrustPolicy('team-a', { constraints: { network: 'None' } }, 'closed'));
    const closed = { trustPolicyRef: { name: 'closed' } };
    await apiServer.apply(buildAgent('team-a', 'loose', { ...closed, constraints: { network: 'Allowlist' } }));
    const loose = await apiServer.waitForAgent('team-a', 'loose', 'is refused', hasReadyReason('GrantDenied'));
    assert.match(
      readyMessage(loose),
      /^constraints\.network "Allowlist" exceeds policy "closed" \(constraints\.network is None; an agent may only be stricter\)/,
    );
    await patch('loose', 'team-a', { constraints: { network: 'None', files: 'Workspace' } });
    await apiServer.waitForAgent('team-a', 'loose', 'runs', isRunning);
  });

  it('the operator does not adopt a pod that another user created with its name', async () => {
    await apiServer.createNamespace('conflict');
    await apiServer.apply(buildTrustPolicy('conflict'));
    await apiServer.apply(buildAgent('conflict', 'target', { suspend: true }));
    const { metadata } = await apiServer.waitForAgent(
      'conflict',
      'target',
      'is suspended',
      hasReadyReason('Suspended'),
    );
    const name = podName({ name: 'target', uid: metadata.uid }, undefined);
    const account = { namespace: 'conflict', name: 'default' };
    await pollValue(
      'ServiceAccount default',
      () => apiServer.client.get(TYPES.serviceAccounts, account, NEVER_ABORTED),
      (found) => found !== undefined,
    );
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'conflict' },
      spec: { containers: [{ name: 'x', image: 'x' }] },
    };
    const conflicting = await apiServer.client.create<Pod>(TYPES.pods, pod, NEVER_ABORTED);
    await patch('target', 'conflict', { suspend: false });
    const target = await apiServer.waitForAgent(
      'conflict',
      'target',
      'reports the conflict',
      hasReadyReason('PodNameConflict'),
    );
    assert.match(readyMessage(target), new RegExp(`pod "${name}" exists`));
    assert.equal(target.status?.pod, undefined);
    const [still] = await apiServer.listPods('conflict');
    assert.equal(still?.metadata.uid, conflicting.metadata.uid);
    assert.equal(still?.metadata.deletionTimestamp, undefined);
    await apiServer.client.delete(
      TYPES.pods,
      { namespace: 'conflict', name },
      { gracePeriodSeconds: 0 },
      NEVER_ABORTED,
    );
    await apiServer.waitForAgent('conflict', 'target', 'runs', isRunning);
  });

  it('a deleted or evicted pod is replaced by a new one', async () => {
    const before = await apiServer.getAgent('many', 'first');
    const ref = { namespace: 'many', name: before.status?.pod?.name ?? '' };
    await apiServer.client.delete(TYPES.pods, ref, { gracePeriodSeconds: 0 }, NEVER_ABORTED);
    const second = await apiServer.waitForAgent('many', 'first', 'has another pod', (agent) => {
      return isRunning(agent) && agent.status?.pod?.uid !== before.status?.pod?.uid;
    });
    const evicted = { status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory.' } };
    const at = { namespace: 'many', name: second.status?.pod?.name ?? '' };
    await apiServer.client.patch(TYPES.pods, at, evicted, NEVER_ABORTED, { subresource: 'status' });
    await apiServer.waitForAgent('many', 'first', 'has a third pod', (agent) => {
      return isRunning(agent) && agent.status?.pod?.uid !== second.status?.pod?.uid;
    });
  });

  it('the operator recreates removed objects and reverts changed ones', async () => {
    for (const [type, name] of [
      [TYPES.networkPolicies, NAMESPACE_OBJECTS.denyAll],
      [TYPES.networkPolicies, NAMESPACE_OBJECTS.allowGateway],
      [TYPES.networkPolicies, NAMESPACE_OBJECTS.allowEgress],
      [TYPES.resourceQuotas, NAMESPACE_OBJECTS.resourceQuota],
      [TYPES.serviceAccounts, NAMESPACE_OBJECTS.agentServiceAccount],
      [TYPES.configMaps, NAMESPACE_OBJECTS.endpoints],
    ] as const) {
      const known = await get(type, 'team-a', name);
      await apiServer.client.delete(type, { namespace: 'team-a', name }, {}, NEVER_ABORTED);
      await pollValue(
        `a new ${type.kind} ${name}`,
        () => get(type, 'team-a', name),
        (found) => found !== undefined && found.metadata.uid !== known?.metadata.uid,
      );
    }
    const opened = { spec: { egress: [{}] } };
    const ref = { namespace: 'team-a', name: NAMESPACE_OBJECTS.denyAll };
    await apiServer.client.patch(TYPES.networkPolicies, ref, opened, NEVER_ABORTED);
    await pollValue(
      'the reverted network policy',
      () => get(TYPES.networkPolicies, ref.namespace, ref.name),
      (found) => !JSON.stringify(found?.['spec']).includes('"egress"'),
    );
  });

  it('the status of a policy has the number of its agents', async () => {
    assert.equal(await agentsOfMany(), 21);
  });

  it('each reported transition is one Event of the agent', async () => {
    const reasons = new Set(await eventsOf('team-a', 'analyst', 3));
    for (const reason of ['Running', 'Suspended', 'Starting']) assert.ok(reasons.has(reason), [...reasons].join());
  });
});
