import { LABELS, NAMESPACE_OBJECTS } from '../api/cluster.ts';
import type { ResourceType } from '../kube/client.ts';
import type { Metrics } from '../kube/metrics.ts';
import { type ChangeListener, Reflector } from '../kube/reflector.ts';
import { type KubeObject, Store } from '../kube/store.ts';
import type { Transport } from '../kube/transport.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../telemetry/log.ts';
import { Cache } from './cache.ts';
import type { OperatorConfig } from './config.ts';
import { GUARD_LABEL } from './guard/policies.ts';
import { type PlainObject, type Pod, type StoredAgent, type StoredPolicy, TYPES } from './kube-types.ts';

export interface InformerDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly random: () => number;
}

/** One kind: what is known, and who is told of changes. */
interface Watched<T extends KubeObject> {
  readonly cache: Cache<T>;
  readonly reflectors: readonly Reflector<T>[];
  readonly subscribe: (listener: ChangeListener<T>) => void;
}

export interface Informers {
  readonly agents: Watched<StoredAgent>;
  readonly policies: Watched<StoredPolicy>;
  readonly pods: Watched<Pod>;
  /** Objects of fixed name in namespaces with agents. */
  readonly children: readonly (Watched<PlainObject> & { readonly type: ResourceType })[];
  readonly guardPolicies: Watched<PlainObject>;
  readonly guardBindings: Watched<PlainObject>;
  /** By name, for the manager. */
  readonly all: Readonly<Record<string, Reflector<KubeObject>>>;
}

export function createInformers(deps: InformerDeps, config: OperatorConfig): Informers {
  const all: Record<string, Reflector<KubeObject>> = {};
  const namespaces = config.namespaces ?? [undefined];
  const watch = <T extends KubeObject>(type: ResourceType, options: WatchOptions<T> = {}) => {
    const scopes = type.namespaced ? namespaces : [undefined];
    const reflectors = (options.off === true ? [] : scopes).map((namespace) => {
      const { labelSelector, fieldSelector, transform } = options;
      const reflector = new Reflector<T>({
        ...deps,
        type,
        store: new Store<T>(),
        ...(namespace === undefined ? {} : { namespace }),
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...(fieldSelector === undefined ? {} : { fieldSelector }),
        ...(transform === undefined ? {} : { transform }),
      });
      const what = `${type.plural}${fieldSelector === undefined ? '' : ` ${fieldSelector}`}`;
      all[namespace === undefined ? what : `${what} of ${namespace}`] = reflector as unknown as Reflector<KubeObject>;
      return reflector;
    });
    return {
      type,
      cache: new Cache(reflectors.map(({ store }) => store)),
      reflectors,
      subscribe: (listener: ChangeListener<T>) => reflectors.forEach((reflector) => reflector.subscribe(listener)),
    };
  };
  // By name: the operator may read no other object of these kinds.
  const child = (type: ResourceType, name: string) =>
    watch<PlainObject>(type, { fieldSelector: `metadata.name=${name}`, transform: withoutStatus });
  const guards = { labelSelector: GUARD_LABEL, off: config.guard === undefined };
  return {
    agents: watch<StoredAgent>(TYPES.agents),
    policies: watch<StoredPolicy>(TYPES.trustPolicies),
    pods: watch<Pod>(TYPES.pods, { labelSelector: `${LABELS.agentPod}=true`, transform: essentialsOfPod }),
    children: [
      child(TYPES.networkPolicies, NAMESPACE_OBJECTS.denyAll),
      child(TYPES.networkPolicies, NAMESPACE_OBJECTS.allowGateway),
      child(TYPES.resourceQuotas, NAMESPACE_OBJECTS.resourceQuota),
      child(TYPES.serviceAccounts, NAMESPACE_OBJECTS.agentServiceAccount),
      child(TYPES.serviceAccounts, NAMESPACE_OBJECTS.peopleServiceAccount),
      child(TYPES.configMaps, NAMESPACE_OBJECTS.doors),
    ],
    guardPolicies: watch<PlainObject>(TYPES.admissionPolicies, guards),
    guardBindings: watch<PlainObject>(TYPES.admissionBindings, guards),
    all,
  };
}

interface WatchOptions<T> {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly transform?: (object: T) => T;
  /** Not part of this installation: nothing is watched, nothing is known. */
  readonly off?: boolean;
}

/** What a reconcile reads of a pod; the rest of thousands of pods would fill the memory. */
function essentialsOfPod({ metadata, spec, status }: Pod): Pod {
  const { conditions = [], containerStatuses, phase, reason, message } = status ?? {};
  return {
    metadata,
    spec: spec?.nodeName === undefined ? {} : { nodeName: spec.nodeName },
    status: {
      ...(phase === undefined ? {} : { phase }),
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      conditions: conditions.filter(({ type }) => type === 'Ready' || type === 'PodScheduled'),
      ...(containerStatuses === undefined ? {} : { containerStatuses: containerStatuses.map(essentialsOfContainer) }),
    },
  };
}

type Containers = NonNullable<NonNullable<Pod['status']>['containerStatuses']>;

function essentialsOfContainer({
  name,
  ready,
  restartCount,
  state,
  lastState,
}: Containers[number]): Containers[number] {
  return {
    name,
    ...(ready === undefined ? {} : { ready }),
    ...(restartCount === undefined ? {} : { restartCount }),
    ...(state === undefined ? {} : { state }),
    ...(lastState === undefined ? {} : { lastState }),
  };
}

/** A quota's status changes with every pod, and nobody here reads it. */
function withoutStatus(object: PlainObject): PlainObject {
  const { status: _dropped, ...rest } = object;
  return rest;
}
