import { LABELS, NAMESPACE_OBJECTS } from '../../src/api/cluster.ts';
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import { TYPES } from '../../src/operator/kube/types.ts';
import { podLabels, podTemplate } from '../../src/operator/pods/pod-template.ts';
import { createNamespace } from '../../test/cluster/objects.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { readyPods, runConcurrently, type Times } from './support/agents.ts';
import type { BenchCluster } from './support/bench-cluster.ts';
import type { LoadReport } from './support/load.ts';

const PROTECTED = 'floor';
const ORDINARY = 'reference';

/** Pods that are created without an operator. */
export interface Floor {
  readonly times: Times;
  readonly spent: LoadReport;
}

export interface Floors {
  /** The pods of agents, under the account and the admission policies of the operator. */
  readonly agentPods: Floor;
  /** Pods of one container without a volume, created by an administrator in an ordinary namespace: the load test of agent-sandbox. */
  readonly smallPods: Floor;
}

/** Measures what API server, scheduler and fake nodes need for the pods alone. */
export async function measureFloors(cluster: BenchCluster, count: number, concurrency: number): Promise<Floors> {
  return {
    agentPods: await agentPods(cluster, count, concurrency),
    smallPods: await smallPods(cluster, count, concurrency),
  };
}

async function agentPods(cluster: BenchCluster, count: number, concurrency: number): Promise<Floor> {
  const { config } = cluster;
  const [standard] = config?.sandboxClasses ?? [];
  if (config === undefined || standard === undefined) throw new Error('the chart has no sandbox class');
  const template = podTemplate(config, standard);
  await cluster.createAgentsNamespace(PROTECTED);
  await using operator = await cluster.connectAsOperator();
  const metadata = { name: NAMESPACE_OBJECTS.agentServiceAccount, namespace: PROTECTED };
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
  await operator.client.create(TYPES.serviceAccounts, account, NEVER_ABORTED);
  // With the label of an agent the pods are not warm pods, which an operator would delete.
  const labels = { ...podLabels(template), [LABELS.agentUid]: 'floor' };
  return await measurePods(cluster, operator.client, {
    namespace: PROTECTED,
    labels,
    spec: template.spec,
    count,
    concurrency,
  });
}

async function smallPods(cluster: BenchCluster, count: number, concurrency: number): Promise<Floor> {
  await createNamespace(cluster.plane, ORDINARY);
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: ORDINARY } };
  // The controller of ServiceAccounts may be faster.
  await cluster.client.create(TYPES.serviceAccounts, account, NEVER_ABORTED).catch(() => undefined);
  const spec = {
    terminationGracePeriodSeconds: 1,
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    containers: [{ name: 'sandbox', image: 'alpine', command: ['sleep', '3600'] }],
  };
  return measurePods(cluster, cluster.client, { namespace: ORDINARY, labels: {}, spec, count, concurrency });
}

interface FloorPods {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: object;
  readonly count: number;
  readonly concurrency: number;
}

async function measurePods(cluster: BenchCluster, client: KubeClient, pods: FloorPods): Promise<Floor> {
  const { namespace, labels, spec, count, concurrency } = pods;
  await using ready = await readyPods(cluster, namespace);
  const one = (index: number) => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: `pod-${index}`, namespace, labels }, spec };
    return ready.timeUntilReady(pod, () => client.create(TYPES.pods, pod, NEVER_ABORTED));
  };
  // The first pods include one-time setup and are not measured.
  await runConcurrently(concurrency, concurrency, (index) => one(count + index));
  const endLoad = cluster.measure();
  const times = await runConcurrently(count, concurrency, one);
  return { times, spent: endLoad() };
}
