import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { LABELS, NAMESPACE_OBJECTS } from '../../../src/api/cluster.ts';
import { ApiError } from '../../../src/kube/client/kube-client.ts';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { clockWithShortPauses } from '../../support/clocks.ts';
import { OPERATOR_CONFIG, type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const MINUTE_MS = 60_000;
const READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const isRunning = (agent: StoredAgent) => readyReason(agent) === 'Running';

interface EventObject extends PlainObject {
  readonly reason: string;
}

describe('pods and objects that the operator finds and replaces', () => {
  let apiServer: ApiServerFixture;
  let operator: RunningOperator;
  /** Called before the operator sends a request. */
  let onSend: typeof onSent = async () => {};
  /** Called after the operator has sent a request; may throw, so that the operator misses the response. */
  let onSent: (request: KubeRequest) => Promise<void> = async () => {};

  before(async () => {
    apiServer = await startApiServerFixture({ controllerManager: true });
    operator = await startOperator(apiServer, OPERATOR_CONFIG, {
      clock: clockWithShortPauses(new Set([MINUTE_MS]), 200),
      wrap: (transport) => ({
        ...transport,
        async send(request, signal) {
          await onSend(request);
          const sent = await transport.send(request, signal);
          await onSent(request);
          return sent;
        },
      }),
    });
  });

  after(async () => {
    await operator?.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  const podOf = async ({ status, metadata }: StoredAgent): Promise<Pod> => {
    const ref = { namespace: metadata.namespace, name: status?.pod?.name ?? '' };
    const pod = await apiServer.client.get<Pod>(TYPES.pods, ref, NEVER_ABORTED);
    assert.ok(pod !== undefined);
    return pod;
  };
  const reasonsIn = async (namespace: string): Promise<string[]> => {
    const events = await apiServer.client.list<EventObject>(TYPES.events, { namespace }, NEVER_ABORTED);
    return events.map(({ reason }) => reason);
  };
  const createsPod = ({ method, path }: KubeRequest, namespace: string) =>
    method === 'POST' && path.includes(`/namespaces/${namespace}/pods`) && !path.includes('dryRun');

  it('the pod that replaces a terminating one waits for the quota, and is not reported as rejected', async () => {
    const namespace = 'full';
    await apiServer.createNamespace(namespace);
    apiServer.withoutKubelet.add(namespace);
    await apiServer.apply(buildTrustPolicy(namespace, { quotas: { agents: 1 } }));
    await apiServer.apply(buildAgent(namespace, 'only'));
    const first = await apiServer.waitForAgent(
      namespace,
      'only',
      'has a pod',
      ({ status }) => status?.pod !== undefined,
    );
    const ref = { namespace, name: first.status?.pod?.name ?? '' };
    // A pod without a node is deleted at once; the pod of a node terminates for its grace period.
    const target = { apiVersion: 'v1', kind: 'Node', name: 'absent' };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: ref.name, namespace }, target };
    const path = `/api/v1/namespaces/${namespace}/pods/${ref.name}/binding`;
    assert.equal((await apiServer.plane.admin.call('POST', path, { body: binding })).status, 201);
    await apiServer.client.patch(TYPES.pods, ref, { status: READY }, NEVER_ABORTED, { subresource: 'status' });
    await apiServer.waitForAgent(namespace, 'only', 'runs', isRunning);
    const sandbox = { resources: { cpu: '300m' } };
    await apiServer.client.patch(TYPES.agents, { namespace, name: 'only' }, { spec: { sandbox } }, NEVER_ABORTED);
    const waiting = await apiServer.waitForAgent(namespace, 'only', 'waits for the quota', ({ status }) =>
      (status?.conditions ?? []).some(
        ({ type, message }) => type === 'Ready' && message.includes('its share of the quota'),
      ),
    );
    assert.equal(readyReason(waiting), 'Starting');
    await apiServer.client.delete(TYPES.pods, ref, { gracePeriodSeconds: 0 }, NEVER_ABORTED);
    await apiServer.waitForAgent(namespace, 'only', 'has its next pod', ({ status }) => {
      return status?.pod !== undefined && status.pod.uid !== first.status?.pod?.uid;
    });
    assert.ok(!(await reasonsIn(namespace)).includes('PodRejected'));
  });

  it('an own pod that was changed while the response was lost is replaced, and is no conflict', async () => {
    const namespace = 'mutated';
    await apiServer.createNamespace(namespace);
    await apiServer.apply(buildTrustPolicy(namespace));
    let lost = 0;
    onSent = async (request) => {
      if (lost > 0 || !createsPod(request, namespace)) return;
      lost += 1;
      const [pod] = await apiServer.listPods(namespace);
      const spec = (pod as unknown as { spec: { tolerations: object[] } } | undefined)?.spec;
      const tolerations = [...(spec?.tolerations ?? []), { key: 'added.example/by-webhook', operator: 'Exists' }];
      const ref = { namespace, name: pod?.metadata.name ?? '' };
      await apiServer.client.patch(TYPES.pods, ref, { spec: { tolerations } }, NEVER_ABORTED);
      throw new ApiError(500, 'InternalError', 'the response is lost');
    };
    await apiServer.apply(buildAgent(namespace, 'mutant'));
    const agent = await apiServer.waitForAgent(namespace, 'mutant', 'runs', isRunning);
    onSent = async () => {};
    assert.equal(lost, 1);
    assert.ok(!JSON.stringify(await podOf(agent)).includes('added.example'));
    assert.ok(!(await reasonsIn(namespace)).includes('PodNameConflict'));
  });

  it('a network policy that a user stored first under the name is closed before the first pod exists', async () => {
    const namespace = 'squatted';
    await apiServer.createNamespace(namespace);
    const metadata = { name: NAMESPACE_OBJECTS.denyAll, namespace };
    const rules = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] };
    const open = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec: rules };
    await apiServer.client.create(TYPES.networkPolicies, open, NEVER_ABORTED);
    const ref = { namespace, name: NAMESPACE_OBJECTS.denyAll };
    const seen: unknown[] = [];
    onSend = async (request) => {
      if (!createsPod(request, namespace)) return;
      seen.push((await apiServer.client.get<PlainObject>(TYPES.networkPolicies, ref, NEVER_ABORTED))?.['spec']);
    };
    await apiServer.apply(buildTrustPolicy(namespace));
    await apiServer.apply(buildAgent(namespace, 'careful'));
    await apiServer.waitForAgent(namespace, 'careful', 'runs', isRunning);
    onSend = async () => {};
    const podSelector = { matchLabels: { [LABELS.agentPod]: 'true' } };
    assert.ok(seen.length > 0);
    for (const spec of seen) assert.deepEqual(spec, { podSelector, policyTypes: ['Ingress', 'Egress'] });
  });

  it('the pod of an agent that was deleted without it is deleted', async () => {
    const namespace = 'orphaned';
    await apiServer.createNamespace(namespace);
    await apiServer.apply(buildTrustPolicy(namespace));
    await apiServer.apply(buildAgent(namespace, 'parent'));
    await apiServer.waitForAgent(namespace, 'parent', 'runs', isRunning);
    const ref = { namespace, name: 'parent' };
    await apiServer.client.delete(TYPES.agents, ref, { propagation: 'Orphan' }, NEVER_ABORTED);
    await poll('the deletion of the agent', async () => {
      return (await apiServer.client.get(TYPES.agents, ref, NEVER_ABORTED)) === undefined;
    });
    await pollValue(
      'no pod',
      () => apiServer.listPods(namespace),
      (pods) => pods.length === 0,
    );
  });
});
