import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LABELS, NAMESPACE_OBJECTS } from '../../../src/api/cluster.ts';
import type { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { createTransport, type Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { parseOperatorConfig } from '../../../src/operator/config.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { admissionObjects } from '../../support/admission/policies.ts';
import { installCrds } from '../../support/api-server/crds.ts';
import { renderChart } from '../../cluster/helm.ts';
import { writeTokenKubeconfig } from '../../cluster/kubeconfig.ts';
import { createAll, createNamespace } from '../../cluster/objects.ts';

import { runFakeKubelet } from '../../support/api-server/fake-kubelet.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

const FIRST = { release: 'temper-system', team: 'team-a' };
const SECOND = { release: 'temper-second', team: 'team-b' };
/** Installed like the second release, but not listed in the values of the first. */
const UNLISTED = { release: 'temper-third', team: 'team-c' };
const ALL = [FIRST, SECOND, UNLISTED];
const EVENTS = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
/** Workloads, which need nodes, and CRDs, which the test has already installed. */
const NOT_INSTALLED = new Set(['Deployment', 'StatefulSet', 'CustomResourceDefinition']);

interface StoredEvent extends PlainObject {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

describe('two releases in one cluster, each with its own namespaces', () => {
  let plane: ControlPlane;
  let folder: string;
  let client: KubeClient;
  const transports: Transport[] = [];
  const operators: RunningOperator[] = [];
  const stopping = new AbortController();
  let kubelet: Promise<void>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-two-releases-'));
    plane = await startControlPlane({ controllerManager: true, prepare: installCrds });
    client = createKubeClient(await connect(plane.kubeconfig));
    for (const { release, team } of ALL) {
      await createNamespace(plane, release);
      await createNamespace(plane, team, { [LABELS.agents]: 'true' });
    }
    kubelet = runFakeKubelet(await aNode(), new Set(), stopping.signal);
    const prerequisites = ['--set', `admissionPolicies.operatorNamespaces={${SECOND.release}}`];
    await install(FIRST, prerequisites);
    await install(SECOND, ['--set', 'clusterPrerequisites.enabled=false']);
    await install(UNLISTED, ['--set', 'clusterPrerequisites.enabled=false']);
    for (const { team } of ALL) {
      await createAll(plane, [buildTrustPolicy(team), buildAgent(team, 'analyst')]);
    }
  });

  after(async () => {
    await Promise.all(operators.map((operator) => operator.stop()));
    stopping.abort();
    await kubelet;
    for (const transport of transports) await transport[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function connect(kubeconfig: string): Promise<Transport> {
    const access = await loadClusterAccess({ kind: 'file', path: kubeconfig }, systemClock);
    const transport = createTransport({ access, clock: systemClock, metrics: NO_METRICS });
    transports.push(transport);
    return transport;
  }

  /** A client of a kube-system ServiceAccount: the admission policy denies pod status updates to other users. */
  async function aNode(): Promise<Transport> {
    const metadata = { name: 'test-node', namespace: 'kube-system' };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
      roleRef,
    };
    await createAll(plane, [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata }, binding]);
    return connectAs(metadata);
  }

  async function connectAs(account: { readonly namespace: string; readonly name: string }): Promise<Transport> {
    const request = { audiences: [], expirationSeconds: 3_600 };
    const { token } = await client.createToken(account, request, NEVER_ABORTED);
    return connect(await writeTokenKubeconfig(folder, plane, { name: `${account.namespace}-${account.name}`, token }));
  }

  /** Creates the objects of `helm install` and starts the operator with its ServiceAccount. */
  async function install({ release, team }: typeof FIRST, values: string[]): Promise<void> {
    const objects = await renderChart('--namespace', release, '--set', `namespaces={${team}}`, ...values);
    await createAll(
      plane,
      objects.filter(({ kind }) => !NOT_INSTALLED.has(kind)),
    );
    const file = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'temper-operator');
    const { 'operator.yaml': text = '' } = (file?.['data'] ?? {}) as Record<string, string>;
    const { nats: _nats, ...config } = parseOperatorConfig(text);
    const own = await connectAs({ namespace: release, name: 'temper-operator' });
    operators.push(await startOperator({ connect: async () => own, defer: () => {} }, config));
  }

  const agentIn = async (namespace: string) => {
    const found = await client.get<StoredAgent>(TYPES.agents, { namespace, name: 'analyst' }, NEVER_ABORTED);
    assert.ok(found !== undefined);
    return found;
  };
  const podsIn = (namespace: string) => client.list<Pod>(TYPES.pods, { namespace }, NEVER_ABORTED);
  const hasReadyReason = (reason: string) => (agent: StoredAgent) => readyReason(agent) === reason;

  it('both releases run their agents, each with its own gateway', async () => {
    for (const { release, team } of [FIRST, SECOND]) {
      const agent = await pollValue(`a running agent in ${team}`, () => agentIn(team), hasReadyReason('Running'));
      const pods = await podsIn(team);
      assert.deepEqual(
        pods.map(({ metadata }) => metadata.uid),
        [agent.status?.pod?.uid],
      );
      const endpoints = { namespace: team, name: NAMESPACE_OBJECTS.endpoints };
      const { data } = (await client.get(TYPES.configMaps, endpoints, NEVER_ABORTED)) as {
        data?: Record<string, string>;
      };
      assert.match(JSON.stringify(data), new RegExp(`temper-gateway\\.${release}\\.svc`));
    }
  });

  it('a release that the admission policies do not list creates no pod and reports the remedy', async () => {
    const { release, team } = UNLISTED;
    const query = { namespace: team, fieldSelector: 'involvedObject.kind=Agent' };
    const events = () => client.list<StoredEvent>(EVENTS, query, NEVER_ABORTED);
    const [event] = await pollValue('an Event with the reason', events, (found) => found.length > 0);
    assert.deepEqual([event?.type, event?.reason], ['Warning', 'AdmissionPolicyMissing']);
    assert.match(event?.message ?? '', new RegExp(`list ${release} in admissionPolicies\\.operatorNamespaces`));
    assert.deepEqual(await podsIn(team), []);
    // List the release, as an upgrade of the first release does.
    const both = `admissionPolicies.operatorNamespaces={${SECOND.release},${release}}`;
    for (const policy of await admissionObjects('--set', `namespaces={${FIRST.team}}`, '--set', both)) {
      const { kind, metadata } = policy;
      if (kind === 'ValidatingAdmissionPolicy')
        await client.patch(TYPES.admissionPolicies, metadata, policy, NEVER_ABORTED);
    }
    await pollValue('a running agent', () => agentIn(team), hasReadyReason('Running'));
    assert.equal((await podsIn(team)).length, 1);
  });
});
