import type { ResourceType } from '../../src/kube/client.ts';
import { TYPES } from '../../src/operator/kube-types.ts';
import type { Bus, Facts } from '../../src/operator/ports.ts';
import { type World, agentOf, eventually, policyOf, readyReason } from './operator-world.ts';

const never = new AbortController().signal;

/** What the operator hears from elsewhere, as the test says. */
export interface Elsewhere {
  readonly facts: Facts;
  readonly bus: Bus;
  tell(agentUid: string, facts: ReturnType<Facts['of']>): void;
  busAwaySince(date: Date | undefined): void;
}

export function elsewhere(): Elsewhere {
  const known = new Map<string, ReturnType<Facts['of']>>();
  let since: Date | undefined;
  let learned = Promise.withResolvers<void>();
  let changed = Promise.withResolvers<void>();
  const untilAborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  return {
    facts: {
      of: ({ metadata }) => known.get(metadata.uid) ?? {},
      store: () => undefined,
      async *learned(signal) {
        while (!signal.aborted) {
          yield;
          await Promise.race([learned.promise, untilAborted(signal)]);
          learned = Promise.withResolvers();
        }
      },
    },
    bus: {
      pending: () => Promise.resolve(0),
      lastActivity: () => Promise.resolve(new Date()),
      // oxlint-disable-next-line require-yield -- nobody is woken
      async *wakes(signal) {
        await untilAborted(signal);
      },
      residents: () => Promise.resolve([]),
      sweep: () => Promise.resolve(),
      held: () => Promise.resolve(undefined),
      release: () => Promise.resolve(false),
      async *outages(_patience, signal) {
        while (!signal.aborted) {
          await Promise.race([changed.promise, untilAborted(signal)]);
          changed = Promise.withResolvers();
          yield since;
        }
      },
      unavailableSince: () => since,
    },
    tell(uid, facts) {
      known.set(uid, facts);
      learned.resolve();
    },
    busAwaySince(date) {
      since = date;
      changed.resolve();
    },
  };
}

export interface Stage {
  readonly world: World;
  readonly elsewhere: Elsewhere;
  /** Of its own for each fault. */
  readonly namespace: string;
}

/** Something that goes wrong, what `kubectl describe agent` must say of it, and what ends it. */
export interface Fault {
  readonly what: string;
  /** Short, for the name of the namespace. */
  readonly id: string;
  /** The condition, where it is not Ready. */
  readonly condition?: string;
  readonly status?: 'True' | 'False';
  readonly reason: string;
  /** What happened, to what, and what to do. */
  readonly says: readonly RegExp[];
  /** Makes the agent `analyst`, unless the fault has to come first. */
  readonly make: (stage: Stage) => Promise<void>;
  readonly end: (stage: Stage) => Promise<void>;
}

export const begin = async ({ world, namespace }: Stage, agent: object = {}, policy: object = {}) => {
  await world.apply(policyOf(namespace, policy));
  await world.apply(agentOf(namespace, 'analyst', agent));
};
export const create = (world: World, of: ResourceType, object: object) => world.client.create(of, object, never);
export const remove = ({ world }: Stage, of: ResourceType, name: string, namespace?: string) =>
  world.client.delete(of, namespace === undefined ? { name } : { name, namespace }, {}, never);
export const change = ({ world, namespace }: Stage, spec: object) =>
  world.client.patch(TYPES.agents, { namespace, name: 'analyst' }, { spec }, never);
export const changePolicy = ({ world, namespace }: Stage, spec: object) =>
  world.client.patch(TYPES.trustPolicies, { namespace, name: 'standard' }, { spec }, never);
export const running = ({ world, namespace }: Stage) =>
  world.agentWith(namespace, 'analyst', 'runs', (agent) => readyReason(agent) === 'Running');
export const inNamespace = (namespace: string) => ({ matchLabels: { 'kubernetes.io/metadata.name': namespace } });

/** Writes the status of the agent's pod as kubelet or scheduler would; resolves to the uid of the pod. `not` is one that has ended. */
export const podSays = async ({ world, namespace }: Stage, status: object, not?: string): Promise<string> => {
  world.untended.add(namespace);
  const agent = await world.agentWith(namespace, 'analyst', 'has a pod', ({ status: said }) => {
    return said?.pod !== undefined && said.pod.uid !== not;
  });
  const { name = '', uid = '' } = agent.status?.pod ?? {};
  await world.client.patch(TYPES.pods, { namespace, name }, { status }, never, { subresource: 'status' });
  return uid;
};
/** An agent whose pod nobody starts, and what is said of the pod. */
export const beginWith = async (stage: Stage, status: object): Promise<string> => {
  stage.world.untended.add(stage.namespace);
  await begin(stage);
  return podSays(stage, status);
};
export const tended = ({ world, namespace }: Stage) => Promise.resolve(void world.untended.delete(namespace));
export const containers = (agent: object) => ({
  phase: 'Running',
  containerStatuses: [{ name: 'agent', image: 'temper', imageID: '', ready: false, restartCount: 0, ...agent }],
});

export const factSays = async (stage: Stage, facts: ReturnType<Facts['of']>) => {
  await begin(stage);
  const { metadata } = await running(stage);
  stage.elsewhere.tell(metadata.uid, facts);
};

/** A rule just made lets pods through for a moment. */
export async function refusesPods({ world, namespace }: Stage): Promise<void> {
  const metadata = { name: 'probe', namespace };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'x', image: 'x' }] } };
  await eventually(
    () => world.plane.admin.call('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, { body: pod }),
    ({ status, body }) =>
      status === 500 || (status >= 400 && /ValidatingAdmissionPolicy/.test(String(body['message']))),
    'the rule in force',
  );
}
