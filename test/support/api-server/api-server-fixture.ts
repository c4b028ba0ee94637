import { PRIORITY_CLASS } from '../../../src/api/cluster.ts';
import type { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { createTransport, type Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from '../../cluster/control-plane.ts';
import { installCrds } from './crds.ts';
import { runFakeKubelet } from './fake-kubelet.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../stubs.ts';

export const RELEASE_NAMESPACE = 'temper-system';

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
  /** Calls `stop` when the fixture is disposed, before the API server ends. So what a failed test leaves running ends too. */
  defer(stop: () => Promise<void>): void;
  /** Namespaces that the fake kubelet ignores: the test writes the status of their pods itself. */
  readonly withoutKubelet: Set<string>;
}

export async function startApiServerFixture(options: ControlPlaneOptions = {}): Promise<ApiServerFixture> {
  const plane = await startControlPlane({ ...options, prepare: installCrds });
  const access = await loadClusterAccess({ kind: 'file', path: plane.kubeconfig }, systemClock);
  const connect = async () => createTransport({ access, clock: systemClock, metrics: NO_METRICS });
  const transport = await connect();
  const client = createKubeClient(transport);
  const stopping = new AbortController();
  await client.create(
    { group: 'scheduling.k8s.io', version: 'v1', plural: 'priorityclasses', kind: 'PriorityClass', namespaced: false },
    { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: PRIORITY_CLASS }, value: 0 },
    NEVER_ABORTED,
  );
  const createNamespace = async (name: string) => {
    await client.create(TYPES.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, NEVER_ABORTED);
  };
  await createNamespace(RELEASE_NAMESPACE);
  const serviceSpec = { ports: [{ port: 8443 }], selector: { 'app.kubernetes.io/component': 'gateway' } };
  const metadata = { name: 'temper-gateway', namespace: RELEASE_NAMESPACE };
  await client.create(
    TYPES.services,
    { apiVersion: 'v1', kind: 'Service', metadata, spec: serviceSpec },
    NEVER_ABORTED,
  );
  const withoutKubelet = new Set<string>();
  const deferred = new AsyncDisposableStack();
  const kubelet = runFakeKubelet(transport, withoutKubelet, stopping.signal);
  const getAgent = async (where: string, name: string) => {
    const found = await client.get<StoredAgent>(TYPES.agents, { namespace: where, name }, NEVER_ABORTED);
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
      await client.apply(type, object, { manager: 'test', force: true }, NEVER_ABORTED);
    },
    waitForAgent: (where, name, what, holds) => pollValue(`agent ${name}: ${what}`, () => getAgent(where, name), holds),
    listPods: (where) => client.list<Pod>(TYPES.pods, { namespace: where }, NEVER_ABORTED),
    defer: (stop) => deferred.defer(stop),
    async [Symbol.asyncDispose]() {
      // In reverse order, and each also when another one failed: a server that stays would keep the test's process alive.
      await using ending = new AsyncDisposableStack();
      ending.use(plane);
      ending.use(transport);
      ending.defer(() => kubelet);
      ending.defer(() => stopping.abort());
      ending.use(deferred);
    },
  };
}
