import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LABELS, NAMESPACE_OBJECTS } from '../../src/api/cluster.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterAccess } from '../../src/kube/cluster-access.ts';
import { createKubeClient } from '../../src/kube/kube-client.ts';
import { createTransport, type Transport } from '../../src/kube/transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { parseOperatorConfig } from '../../src/operator/config.ts';
import { type PlainObject, type Pod, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { guardObjects, installCrds } from '../cluster/guards.ts';
import { renderChart } from '../cluster/helm.ts';
import { writeTokenKubeconfig } from '../cluster/kubeconfig.ts';
import { createAll, createNamespace } from '../cluster/objects.ts';
import {
  agentOf,
  eventually,
  NO_METRICS,
  policyOf,
  readyReason,
  type Running,
  runKubelet,
  startOperator,
} from './operator-world.ts';

const FIRST = { release: 'temper-system', team: 'team-a' };
const SECOND = { release: 'temper-second', team: 'team-b' };
/** Installed as the second one is, but not in the list of the first. */
const UNLISTED = { release: 'temper-third', team: 'team-c' };
const ALL = [FIRST, SECOND, UNLISTED];
const EVENTS = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
const NEVER = new AbortController().signal;
/** What only nodes could run, and the kinds, which every release renders and the first installs. */
const LEFT_OUT = new Set(['Deployment', 'StatefulSet', 'CustomResourceDefinition']);

interface Told extends PlainObject {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

describe('two releases in one cluster, each with its own namespaces', () => {
  let plane: ControlPlane;
  let folder: string;
  let client: KubeClient;
  const transports: Transport[] = [];
  const operators: Running[] = [];
  const stopping = new AbortController();
  let kubelet: Promise<void>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-two-releases-'));
    plane = await startControlPlane({ controllerManager: true });
    client = createKubeClient(await connect(plane.kubeconfig));
    await installCrds(plane);
    for (const { release, team } of ALL) {
      await createNamespace(plane, release);
      await createNamespace(plane, team, { [LABELS.agents]: 'true' });
    }
    kubelet = runKubelet(await aNode(), new Set(), stopping.signal);
    const prerequisites = ['--set', `guards.operatorNamespaces={${SECOND.release}}`];
    await install(FIRST, prerequisites);
    await install(SECOND, ['--set', 'clusterPrerequisites.enabled=false']);
    await install(UNLISTED, ['--set', 'clusterPrerequisites.enabled=false']);
    for (const { team } of ALL) {
      await createAll(plane, [policyOf(team), agentOf(team, 'analyst')]);
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

  /** An account of the control plane: the fence lets nobody else start pods. */
  async function aNode(): Promise<KubeClient> {
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
    return createKubeClient(await connectAs(metadata));
  }

  async function connectAs(account: { readonly namespace: string; readonly name: string }): Promise<Transport> {
    const request = { audiences: [], expirationSeconds: 3_600 };
    const { token } = await client.createToken(account, request, NEVER);
    return connect(await writeTokenKubeconfig(folder, plane, { name: `${account.namespace}-${account.name}`, token }));
  }

  /** What `helm install` makes, and the operator, which speaks as its own account. */
  async function install({ release, team }: typeof FIRST, values: string[]): Promise<void> {
    const objects = await renderChart('--namespace', release, '--set', `namespaces={${team}}`, ...values);
    await createAll(
      plane,
      objects.filter(({ kind }) => !LEFT_OUT.has(kind)),
    );
    const file = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'temper-operator');
    const { 'operator.yaml': text = '' } = (file?.['data'] ?? {}) as Record<string, string>;
    const { nats: _nats, ...config } = parseOperatorConfig(text);
    const own = await connectAs({ namespace: release, name: 'temper-operator' });
    operators.push(await startOperator({ connect: async () => own }, config));
  }

  const agentIn = async (namespace: string) => {
    const found = await client.get<StoredAgent>(TYPES.agents, { namespace, name: 'analyst' }, NEVER);
    assert.ok(found !== undefined);
    return found;
  };
  const podsIn = (namespace: string) => client.list<Pod>(TYPES.pods, { namespace }, NEVER);
  const isBecause = (reason: string) => (agent: StoredAgent) => readyReason(agent) === reason;

  it('bring their agents up side by side, each behind its own gateway', async () => {
    for (const { release, team } of [FIRST, SECOND]) {
      const agent = await eventually(() => agentIn(team), isBecause('Running'), `the agent of ${team} runs`);
      const pods = await podsIn(team);
      assert.deepEqual(
        pods.map(({ metadata }) => metadata.uid),
        [agent.status?.pod?.uid],
      );
      const doors = { namespace: team, name: NAMESPACE_OBJECTS.doors };
      const { data } = (await client.get(TYPES.configMaps, doors, NEVER)) as { data?: Record<string, string> };
      assert.match(JSON.stringify(data), new RegExp(`temper-gateway\\.${release}\\.svc`));
    }
  });

  it('make no pod for a release that the guards do not serve, and say what to do', async () => {
    const { release, team } = UNLISTED;
    const query = { namespace: team, fieldSelector: 'involvedObject.kind=Agent' };
    const events = () => client.list<Told>(EVENTS, query, NEVER);
    const [told] = await eventually(events, (found) => found.length > 0, 'an Event tells why');
    assert.deepEqual([told?.type, told?.reason], ['Warning', 'GuardMissing']);
    assert.match(told?.message ?? '', new RegExp(`list ${release} in guards\\.operatorNamespaces`));
    assert.deepEqual(await podsIn(team), []);
    // Listed now, as an upgrade of the first release does.
    const both = `guards.operatorNamespaces={${SECOND.release},${release}}`;
    for (const guard of await guardObjects('--set', `namespaces={${FIRST.team}}`, '--set', both)) {
      const { kind, metadata } = guard;
      if (kind === 'ValidatingAdmissionPolicy') await client.patch(TYPES.admissionPolicies, metadata, guard, NEVER);
    }
    await eventually(() => agentIn(team), isBecause('Running'), 'the agent runs');
    assert.equal((await podsIn(team)).length, 1);
  });
});
