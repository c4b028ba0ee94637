import { LABELS, NAMESPACE_OBJECTS } from '../../api/cluster.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import type { Metrics } from '../../kube/metrics.ts';
import { type ChangeListener, Reflector } from '../../kube/informer/reflector.ts';
import { type KubeObject, Store } from '../../kube/informer/store.ts';
import type { Transport } from '../../kube/client/transport.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import { Cache } from './cache.ts';
import type { OperatorConfig } from '../config.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { pruneApproval, pruneRequest, type StoredApproval, type StoredRequest } from '../approval/stored-decision.ts';
import { pruneCapability, type StoredCapability } from '../capabilities/stored-capability.ts';
import { pruneTool, type StoredTool } from '../tool/stored-tool.ts';
import { POLICY_LABEL_SELECTOR } from '../admission-policies/installed-policies.ts';
import { pruneAgent, prunePod, prunePolicy, pruneChild } from './prune.ts';
import { type PlainObject, type Pod, type Stored, type StoredAgent, type StoredPolicy, TYPES } from './types.ts';

const NETWORK_POLICIES = [NAMESPACE_OBJECTS.denyAll, NAMESPACE_OBJECTS.allowGateway, NAMESPACE_OBJECTS.allowEgress];

export interface InformerDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly random: () => number;
}

/** The informer of one kind: its cache, its reflectors and its change listeners. */
interface Informer<T extends KubeObject> {
  readonly cache: Cache<T>;
  readonly reflectors: readonly Reflector<T>[];
  readonly subscribe: (listener: ChangeListener<T>) => void;
}

export interface Informers {
  readonly agents: Informer<StoredAgent>;
  readonly policies: Informer<StoredPolicy>;
  readonly pods: Informer<Pod>;
  readonly tools: Informer<StoredTool>;
  readonly capabilities: Informer<StoredCapability>;
  /** Verifier pods, in the namespace of the release. */
  readonly verifiers: Informer<Pod>;
  readonly approvals: Informer<StoredApproval>;
  readonly requests: Informer<StoredRequest>;
  /** Objects with a fixed name in namespaces with agents. */
  readonly children: readonly (Informer<PlainObject> & { readonly type: ResourceType })[];
  readonly admissionPolicies: Informer<PlainObject>;
  readonly admissionBindings: Informer<PlainObject>;
  /** All reflectors by name, for the manager. */
  readonly all: Readonly<Record<string, Reflector<KubeObject>>>;
}

export function createInformers(deps: InformerDeps, config: OperatorConfig): Informers {
  const all: Record<string, Reflector<KubeObject>> = {};
  const namespaces = config.namespaces ?? [undefined];
  const watch = <T extends KubeObject>(type: ResourceType, options: InformerOptions<T> = {}) => {
    const scopes = options.namespaces ?? (type.namespaced ? namespaces : [undefined]);
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
      const what = options.name ?? `${type.plural}${fieldSelector === undefined ? '' : ` ${fieldSelector}`}`;
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
  // By name: RBAC allows the operator to read no other object of these kinds.
  const child = (type: ResourceType, name: string) =>
    watch<PlainObject>(type, { fieldSelector: `metadata.name=${name}`, transform: pruneChild });
  const installed = { labelSelector: POLICY_LABEL_SELECTOR, off: config.admissionPolicies === undefined };
  return {
    agents: watch<StoredAgent>(TYPES.agents, { transform: pruneAgent }),
    policies: watch<StoredPolicy>(TYPES.trustPolicies, { transform: prunePolicy }),
    pods: watch<Pod>(TYPES.pods, { labelSelector: `${LABELS.agentPod}=true`, transform: prunePod }),
    // A transform gets the object of the API server, which is not what it returns.
    tools: watch<StoredTool>(TYPES.emergentTools, {
      transform: (object) => pruneTool(object as unknown as Stored<EmergentTool>),
    }),
    capabilities: watch<StoredCapability>(TYPES.capabilities, {
      transform: (object) => pruneCapability(object as unknown as Stored<Capability>),
    }),
    approvals: watch<StoredApproval>(TYPES.approvals, {
      transform: (object) => pruneApproval(object as unknown as Stored<Approval>),
    }),
    requests: watch<StoredRequest>(TYPES.approvalRequests, {
      transform: (object) => pruneRequest(object as unknown as Stored<ApprovalRequest>),
    }),
    verifiers: watch<Pod>(TYPES.pods, verifierPods(config)),
    children: [
      ...NETWORK_POLICIES.map((name) => child(TYPES.networkPolicies, name)),
      child(TYPES.resourceQuotas, NAMESPACE_OBJECTS.resourceQuota),
      child(TYPES.serviceAccounts, NAMESPACE_OBJECTS.agentServiceAccount),
      child(TYPES.serviceAccounts, NAMESPACE_OBJECTS.usersServiceAccount),
      child(TYPES.configMaps, NAMESPACE_OBJECTS.endpoints),
    ],
    admissionPolicies: watch<PlainObject>(TYPES.admissionPolicies, installed),
    admissionBindings: watch<PlainObject>(TYPES.admissionBindings, installed),
    all,
  };
}

/** Of the namespace of the release, which need not be a watched one. */
function verifierPods({ namespace, verifier }: OperatorConfig): InformerOptions<Pod> {
  const labelSelector = `${LABELS.verifierPod}=true`;
  return {
    name: 'verifiers',
    namespaces: [namespace],
    labelSelector,
    transform: prunePod,
    off: verifier === undefined,
  };
}

interface InformerOptions<T> {
  /** The name of the informer. Default: the kind. */
  readonly name?: string;
  /** Default: the watched namespaces. */
  readonly namespaces?: readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly transform?: (object: T) => T;
  /** The kind is not part of this installation: it is not watched, and its cache stays empty. */
  readonly off?: boolean;
}
