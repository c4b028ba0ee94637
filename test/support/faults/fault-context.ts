import { LABELS } from '../../../src/api/cluster.ts';
import type { ResourceType } from '../../../src/kube/client/kube-client.ts';
import { whenAborted } from '../../../src/lib/async/abort.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import type { AgentActivity, AgentStats } from '../../../src/operator/ports.ts';
import { type ApiServerFixture } from '../api-server/api-server-fixture.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../builders.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED } from '../stubs.ts';

/** Stands in for NATS: the test sets the runtime state and the outages that the operator observes. */
export interface FakeActivity {
  readonly agentStats: AgentStats;
  readonly agentActivity: AgentActivity;
  setRuntimeState(agentUid: string, state: ReturnType<AgentStats['get']>): void;
  setNatsUnavailableSince(date: Date | undefined): void;
}

export function createFakeActivity(): FakeActivity {
  const stateByAgent = new Map<string, ReturnType<AgentStats['get']>>();
  let since: Date | undefined;
  let stateChanged = Promise.withResolvers<void>();
  let outageChanged = Promise.withResolvers<void>();
  return {
    agentStats: {
      get: ({ metadata }) => stateByAgent.get(metadata.uid) ?? {},
      store: () => undefined,
      async *updates(signal) {
        while (!signal.aborted) {
          yield;
          await Promise.race([stateChanged.promise, whenAborted(signal)]);
          stateChanged = Promise.withResolvers();
        }
      },
    },
    agentActivity: {
      pending: () => Promise.resolve(0),
      lastActivity: () => Promise.resolve(new Date()),
      // oxlint-disable-next-line require-yield -- this fake emits no wakeups
      async *wakeups(signal) {
        await whenAborted(signal);
      },
      async *residents() {},
      addResident: () => Promise.resolve(),
      markMissing: () => Promise.resolve(),
      recordDeletion: () => Promise.resolve(),
      deleteAgentData: () => Promise.resolve(),
      inFlightMessages: () => Promise.resolve([]),
      redeliver: () => Promise.resolve(0),
      async *outages(_graceMs, signal) {
        while (!signal.aborted) {
          await Promise.race([outageChanged.promise, whenAborted(signal)]);
          outageChanged = Promise.withResolvers();
          yield since;
        }
      },
      unavailableSince: () => since,
    },
    setRuntimeState(uid, state) {
      stateByAgent.set(uid, state);
      stateChanged.resolve();
    },
    setNatsUnavailableSince(date) {
      since = date;
      outageChanged.resolve();
    },
  };
}

export interface FaultContext {
  readonly apiServer: ApiServerFixture;
  readonly activity: FakeActivity;
  /** Each fault has its own namespace. */
  readonly namespace: string;
}

/** One failure of an agent: how to cause it, what `kubectl describe agent` must show, and how to clear it. */
export interface AgentFault {
  readonly cause: string;
  /** Suffix of the namespace's name. */
  readonly id: string;
  /** Whether agents of other namespaces fail too, so that no other fault can be tested beside this one. */
  readonly isClusterWide?: boolean;
  /** The type of the condition; Ready by default. */
  readonly condition?: string;
  readonly status?: 'True' | 'False';
  readonly reason: string;
  /** The message must name the failure, the affected object and the remedy. */
  readonly messages: readonly RegExp[];
  /** Causes the failure and creates the agent `analyst`, in the order that the failure needs. */
  readonly inject: (context: FaultContext) => Promise<void>;
  readonly clear: (context: FaultContext) => Promise<void>;
}

export const applyAgent = async ({ apiServer, namespace }: FaultContext, agent: object = {}, policy: object = {}) => {
  await apiServer.apply(buildTrustPolicy(namespace, policy));
  await apiServer.apply(buildAgent(namespace, 'analyst', agent));
};
export const createObject = (apiServer: ApiServerFixture, of: ResourceType, object: object) =>
  apiServer.client.create(of, object, NEVER_ABORTED);
export const deleteObject = ({ apiServer }: FaultContext, of: ResourceType, name: string, namespace?: string) =>
  apiServer.client.delete(of, namespace === undefined ? { name } : { name, namespace }, {}, NEVER_ABORTED);
export const patchAgent = ({ apiServer, namespace }: FaultContext, spec: object) =>
  apiServer.client.patch(TYPES.agents, { namespace, name: 'analyst' }, { spec }, NEVER_ABORTED);
export const patchPolicy = ({ apiServer, namespace }: FaultContext, spec: object) =>
  apiServer.client.patch(TYPES.trustPolicies, { namespace, name: 'standard' }, { spec }, NEVER_ABORTED);
export const waitUntilRunning = ({ apiServer, namespace }: FaultContext) =>
  apiServer.waitForAgent(namespace, 'analyst', 'runs', (agent) => readyReason(agent) === 'Running');
export const namespaceSelector = (namespace: string) => ({ matchLabels: { 'kubernetes.io/metadata.name': namespace } });

/** Writes the status of the agent's pod as a kubelet or the scheduler does, and returns the pod's uid. Ignores the pod with the uid `not`. */
export const reportPodStatus = async (
  { apiServer, namespace }: FaultContext,
  status: object,
  not?: string,
): Promise<string> => {
  apiServer.withoutKubelet.add(namespace);
  const agent = await apiServer.getAgent(namespace, 'analyst');
  const isNext = ({ metadata }: Pod) =>
    metadata.labels?.[LABELS.agentUid] === agent.metadata.uid &&
    metadata.deletionTimestamp === undefined &&
    metadata.uid !== not;
  // The label and not the status: a new agent has its first status some time after its pod.
  const find = async () => (await apiServer.listPods(namespace)).find(isNext);
  const pod = await pollValue('a pod of the agent', find, (found) => found !== undefined);
  const { name = '', uid = '' } = pod?.metadata ?? {};
  await apiServer.client.patch(TYPES.pods, { namespace, name }, { status }, NEVER_ABORTED, { subresource: 'status' });
  return uid;
};
/** Creates an agent without a kubelet and reports the status for its pod. */
export const applyAgentWithPodStatus = async (context: FaultContext, status: object): Promise<string> => {
  context.apiServer.withoutKubelet.add(context.namespace);
  await applyAgent(context);
  return reportPodStatus(context, status);
};
export const resumeKubelet = ({ apiServer, namespace }: FaultContext) =>
  Promise.resolve(void apiServer.withoutKubelet.delete(namespace));
export const podWithContainer = (agent: object) => ({
  phase: 'Running',
  containerStatuses: [{ name: 'agent', image: 'temper', imageID: '', ready: false, restartCount: 0, ...agent }],
});

export const reportRuntimeState = async (context: FaultContext, state: ReturnType<AgentStats['get']>) => {
  await applyAgent(context);
  const { metadata } = await waitUntilRunning(context);
  context.activity.setRuntimeState(metadata.uid, state);
};

/** A new admission policy, binding or webhook takes effect with a delay. */
export async function waitUntilPodsDenied({ apiServer, namespace }: FaultContext): Promise<void> {
  const metadata = { name: 'probe', namespace };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'x', image: 'x' }] } };
  await pollValue(
    'an admission policy or webhook denies pods',
    () => apiServer.plane.admin.call('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, { body: pod }),
    ({ status, body }) =>
      status === 500 || (status >= 400 && /ValidatingAdmissionPolicy/.test(String(body['message']))),
  );
}
