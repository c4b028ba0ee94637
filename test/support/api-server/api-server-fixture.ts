import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { PRIORITY_CLASS } from '../../../src/api/cluster.ts';
import type { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import type { Metrics } from '../../../src/kube/metrics.ts';
import { createTransport, type Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from '../../cluster/control-plane.ts';
import { runFakeKubelet } from './fake-kubelet.ts';

const CRDS = new URL('../../../crds/', import.meta.url);
export const RELEASE_NAMESPACE = 'temper-system';
const PATIENCE_MS = 60_000;
const NOBODY = new AbortController().signal;
export const NO_METRICS: Metrics = { count() {}, gauge() {}, observe() {}, watch() {} };

/** An API server with everything an operator needs except nodes, and a fake kubelet that starts and removes agent pods. */
export interface ApiServerFixture extends AsyncDisposable {
  readonly plane: ControlPlane;
  /** A client with the rights of a cluster administrator. */
  readonly client: KubeClient;
  /** Opens a new connection. */
  connect(): Promise<Transport>;
  createNamespace(name: string): Promise<void>;
  apply(object: object): Promise<void>;
  getAgent(namespace: string, name: string): Promise<StoredAgent>;
  /** Polls the Agent until `holds` returns true. `what` describes the condition in the error message. */
  waitForAgent(
    namespace: string,
    name: string,
    what: string,
    holds: (agent: StoredAgent) => boolean,
  ): Promise<StoredAgent>;
  listPods(namespace: string): Promise<Pod[]>;
  /** Namespaces that the fake kubelet ignores: the test writes the status of their pods itself. */
  readonly withoutKubelet: Set<string>;
}

export async function startApiServerFixture(options: ControlPlaneOptions = {}): Promise<ApiServerFixture> {
  const plane = await startControlPlane(options);
  const access = await loadClusterAccess({ kind: 'file', path: plane.kubeconfig }, systemClock);
  const connect = async () => createTransport({ access, clock: systemClock, metrics: NO_METRICS });
  const transport = await connect();
  const client = createKubeClient(transport);
  const stopping = new AbortController();
  await installCrds(plane);
  await client.create(
    { group: 'scheduling.k8s.io', version: 'v1', plural: 'priorityclasses', kind: 'PriorityClass', namespaced: false },
    { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: PRIORITY_CLASS }, value: 0 },
    NOBODY,
  );
  const createNamespace = async (name: string) => {
    await client.create(TYPES.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, NOBODY);
  };
  await createNamespace(RELEASE_NAMESPACE);
  const serviceSpec = { ports: [{ port: 8443 }], selector: { 'app.kubernetes.io/component': 'gateway' } };
  const metadata = { name: 'temper-gateway', namespace: RELEASE_NAMESPACE };
  await client.create(TYPES.services, { apiVersion: 'v1', kind: 'Service', metadata, spec: serviceSpec }, NOBODY);
  const withoutKubelet = new Set<string>();
  const kubelet = runFakeKubelet(client, withoutKubelet, stopping.signal);
  const getAgent = async (where: string, name: string) => {
    const found = await client.get<StoredAgent>(TYPES.agents, { namespace: where, name }, NOBODY);
    if (found === undefined) throw new Error(`Agent ${where}/${name} does not exist`);
    return found;
  };
  return {
    plane,
    client,
    connect,
    withoutKubelet,
    createNamespace,
    getAgent,
    apply: async (object) => {
      const { kind } = object as { kind: string };
      const type = Object.values(TYPES).find((candidate) => candidate.kind === kind);
      if (type === undefined) throw new Error(`TYPES has no entry for kind ${kind}`);
      await client.apply(type, object, { manager: 'test', force: true }, NOBODY);
    },
    waitForAgent: (where, name, what, holds) =>
      eventually(() => getAgent(where, name), holds, `agent ${name}: ${what}`),
    listPods: (where) => client.list<Pod>(TYPES.pods, { namespace: where }, NOBODY),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await kubelet;
      await transport[Symbol.asyncDispose]();
      await plane[Symbol.asyncDispose]();
    },
  };
}

/** Asks until the answer is as wanted. Throws with the last answer. */
export async function eventually<T>(ask: () => Promise<T>, holds: (answer: T) => boolean, what: string): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    if (performance.now() > deadline)
      throw new Error(`never came: ${what}; last: ${JSON.stringify(answer).slice(0, 3_000)}`);
    await sleep(25);
  }
}

async function installCrds({ admin }: ControlPlane): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const file of readdirSync(CRDS)) {
    const crd = parse(readFileSync(new URL(file, CRDS), 'utf8')) as { spec: { names: { plural: string } } };
    const { status, body } = await admin.call('POST', path, { body: crd });
    if (status !== 201) throw new Error(`${file}: ${JSON.stringify(body)}`);
    const served = () => admin.call('GET', `/apis/temper.dev/v1alpha1/${crd.spec.names.plural}`);
    await eventually(served, (answer) => answer.status === 200, `${file} is served`);
  }
}
