import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { LABELS, PRIORITY_CLASS } from '../../src/api/cluster.ts';
import { ApiError, type KubeClient } from '../../src/kube/client.ts';
import { loadClusterAccess } from '../../src/kube/cluster-access.ts';
import { createKubeClient } from '../../src/kube/kube-client.ts';
import type { Metrics } from '../../src/kube/metrics.ts';
import { createTransport, type KubeRequest, type Transport } from '../../src/kube/transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { randomIds } from '../../src/lib/ids.ts';
import { type OperatorConfig, parseOperatorConfig } from '../../src/operator/config.ts';
import { type Pod, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';
import { createOperator, type OperatorDeps } from '../../src/operator/operator.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from '../cluster/control-plane.ts';

const CRDS = new URL('../../crds/', import.meta.url);
export const RELEASE = 'temper-system';
const PATIENCE_MS = 60_000;
const NOBODY = new AbortController().signal;
export const NO_METRICS: Metrics = { count() {}, gauge() {}, observe() {}, watch() {} };

/** An API server with everything an operator needs but nodes, and somebody who tells pods what a kubelet would. */
export interface World extends AsyncDisposable {
  readonly plane: ControlPlane;
  /** Speaks as a cluster administrator. */
  readonly client: KubeClient;
  /** A new connection of its own. */
  connect(): Promise<Transport>;
  namespace(name: string): Promise<void>;
  apply(object: object): Promise<void>;
  agent(namespace: string, name: string): Promise<StoredAgent>;
  /** Waits until the agent is as wanted. */
  agentWith(
    namespace: string,
    name: string,
    what: string,
    holds: (agent: StoredAgent) => boolean,
  ): Promise<StoredAgent>;
  pods(namespace: string): Promise<Pod[]>;
  /** Namespaces whose pods nobody tells anything but the test. */
  readonly untended: Set<string>;
}

export async function startWorld(options: ControlPlaneOptions = {}): Promise<World> {
  const plane = await startControlPlane(options);
  const access = await loadClusterAccess({ kind: 'file', path: plane.kubeconfig }, systemClock);
  const connect = async () => createTransport({ access, clock: systemClock, metrics: NO_METRICS });
  const transport = await connect();
  const client = createKubeClient(transport);
  const stopping = new AbortController();
  await installKinds(plane);
  await client.create(
    { group: 'scheduling.k8s.io', version: 'v1', plural: 'priorityclasses', kind: 'PriorityClass', namespaced: false },
    { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: PRIORITY_CLASS }, value: 0 },
    NOBODY,
  );
  const namespace = async (name: string) => {
    await client.create(TYPES.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, NOBODY);
  };
  await namespace(RELEASE);
  const service = { ports: [{ port: 8443 }], selector: { 'app.kubernetes.io/component': 'gateway' } };
  const metadata = { name: 'temper-gateway', namespace: RELEASE };
  await client.create(TYPES.services, { apiVersion: 'v1', kind: 'Service', metadata, spec: service }, NOBODY);
  const untended = new Set<string>();
  const kubelet = runKubelet(client, untended, stopping.signal);
  const agent = async (where: string, name: string) => {
    const found = await client.get<StoredAgent>(TYPES.agents, { namespace: where, name }, NOBODY);
    if (found === undefined) throw new Error(`no agent ${name}`);
    return found;
  };
  return {
    plane,
    client,
    connect,
    untended,
    namespace,
    agent,
    apply: async (object) => {
      const { kind } = object as { kind: string };
      const type = Object.values(TYPES).find((candidate) => candidate.kind === kind);
      if (type === undefined) throw new Error(`no type ${kind}`);
      await client.apply(type, object, { manager: 'test', force: true }, NOBODY);
    },
    agentWith: (where, name, what, holds) => eventually(() => agent(where, name), holds, `agent ${name}: ${what}`),
    pods: (where) => client.list<Pod>(TYPES.pods, { namespace: where }, NOBODY),
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

async function installKinds({ admin }: ControlPlane): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const file of readdirSync(CRDS)) {
    const crd = parse(readFileSync(new URL(file, CRDS), 'utf8')) as { spec: { names: { plural: string } } };
    const { status, body } = await admin.call('POST', path, { body: crd });
    if (status !== 201) throw new Error(`${file}: ${JSON.stringify(body)}`);
    const served = () => admin.call('GET', `/apis/temper.dev/v1alpha1/${crd.spec.names.plural}`);
    await eventually(served, (answer) => answer.status === 200, `${file} is served`);
  }
}

/** Places pods and starts them at once; removes those that are told to end. */
export async function runKubelet(
  client: KubeClient,
  untended: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const pods = await client.list<Pod>(TYPES.pods, { labelSelector: `${LABELS.agentPod}=true` }, signal);
      for (const pod of pods) {
        if (!untended.has(pod.metadata.namespace ?? '')) await tend(client, pod, signal);
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof ApiError)) throw error;
    }
    await sleep(20, undefined, { signal }).catch(() => {});
  }
}

async function tend(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { name, namespace = '', deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) {
    await client.delete(TYPES.pods, { namespace, name }, { gracePeriodSeconds: 0 }, signal);
    return;
  }
  if (pod.status?.conditions?.some(({ type }) => type === 'Ready') === true) return;
  await client.patch(TYPES.pods, { namespace, name }, { status: RUNNING }, signal, { subresource: 'status' });
}

const RUNNING = {
  phase: 'Running',
  conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' })),
  containerStatuses: ['agent', 'sandbox'].map((name) => ({
    name,
    ready: true,
    restartCount: 0,
    image: 'temper',
    imageID: 'temper',
    state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
  })),
};

export const CONFIG: OperatorConfig = parseOperatorConfig(`
namespace: ${RELEASE}
agent:
  image: temper:test
  resources: {cpu: 100m, memory: 192Mi, ephemeralStorage: 128Mi}
sandboxClasses:
  - name: standard
    image: temper-sandbox:test
    resources: {cpu: 250m, memory: 384Mi, ephemeralStorage: 128Mi}
    workspace: 1Gi
gateway:
  service: temper-gateway
  podLabels: {app.kubernetes.io/component: gateway}
leaderElection: false
`);

/** An operator that runs until it is stopped or its process is said to have died. */
export interface Running {
  /** As SIGTERM does. */
  stop(): Promise<void>;
  /** Resolves when it ended by itself, with why. */
  readonly ended: Promise<unknown>;
}

export async function startOperator(
  world: Pick<World, 'connect'>,
  config: OperatorConfig = CONFIG,
  options: Partial<OperatorDeps> & { wrap?: (transport: Transport, die: () => void) => Transport } = {},
): Promise<Running> {
  const transport = await world.connect();
  const stopping = new AbortController();
  const wrapped = options.wrap?.(transport, () => stopping.abort()) ?? transport;
  const { wrap: _wrap, ...rest } = options;
  const destination = {
    write: (line: string) => (process.env['OPERATOR_LOG'] === undefined ? undefined : process.stderr.write(line)),
  };
  const manager = createOperator(config, {
    transport: wrapped,
    clock: systemClock,
    ids: randomIds,
    random: Math.random,
    log: createLogger({ level: 'debug', destination, secrets: createSecrets() }),
    metrics: NO_METRICS,
    identity: randomIds.next('operator'),
    ...rest,
  });
  const ended = manager.run(stopping.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  return {
    ended,
    async stop() {
      stopping.abort();
      await ended;
      await transport[Symbol.asyncDispose]();
    },
  };
}

export function isWriteRequest({ method, path }: KubeRequest): boolean {
  return method !== 'GET' && !path.includes('dryRun') && !path.includes('/leases');
}

/** Counts what passes. */
export function counting(transport: Transport, seen: KubeRequest[]): Transport {
  return {
    ...transport,
    send: (request, signal) => {
      seen.push(request);
      return transport.send(request, signal);
    },
  };
}

export function policyOf(namespace: string, spec: object = {}, name = 'standard') {
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata: { name, namespace }, spec };
}

export function agentOf(namespace: string, name: string, spec: object = {}) {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: { name, namespace },
    spec: {
      trustPolicyRef: { name: 'standard' },
      model: { primary: 'openai/gpt-4o-mini' },
      prompt: { system: 'Be exact.' },
      ...spec,
    },
  };
}

export function readyReason(agent: StoredAgent): string | undefined {
  return agent.status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

export function messageOfReady(agent: StoredAgent): string {
  return agent.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
}
