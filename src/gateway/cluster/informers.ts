import { resourceType } from '../../kube/client/resource-path.ts';
import { LABELS } from '../../api/cluster.ts';
import { API_VERSION } from '../../api/names.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import {
  type CatalogObject,
  pruneCapability,
  prunePromotedTool,
  type PromotedTool,
} from '../discovery/catalog-entries.ts';
import { type AgentPod, prunePod } from '../../identity/agent-pod.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import { Reflector, type ReflectorOptions } from '../../kube/informer/reflector.ts';
import { type Change, type KubeObject, Store } from '../../kube/informer/store.ts';
import type { GatewayConfig } from '../config.ts';
import { type ApprovalSummary, pruneApproval, pruneToolStatus, type ToolServiceStatus } from './demotions.ts';
import { pruneAgent, prunePolicy } from './prune.ts';

/** The cached members of an EmergentTool: its discovery entry, and whether it is in service. */
export type WatchedTool = PromotedTool & ToolServiceStatus;

const AGENTS = resourceType(API_VERSION, 'agents', 'Agent');
const POLICIES = resourceType(API_VERSION, 'trustpolicies', 'TrustPolicy');
export const CAPABILITIES = resourceType(API_VERSION, 'capabilities', 'Capability');
export const EMERGENT_TOOLS = resourceType(API_VERSION, 'emergenttools', 'EmergentTool');
const APPROVALS = resourceType(API_VERSION, 'approvals', 'Approval');
const PODS = resourceType('v1', 'pods', 'Pod');

/** A transform gets the object of the API server, which is not what it returns. */
function pruneTool(object: WatchedTool): WatchedTool {
  return { ...prunePromotedTool(object), ...pruneToolStatus(object as unknown as EmergentTool) };
}

type InformerOptions = Pick<ReflectorOptions<KubeObject>, 'transport' | 'clock' | 'log' | 'metrics' | 'random'>;

/** One kind in some or all namespaces, in one store. */
class NamespacedInformer<T extends KubeObject> implements AsyncDisposable {
  readonly store = new Store<T>();
  readonly #reflectors: Reflector<T>[];

  constructor(
    type: ResourceType,
    namespaces: readonly string[] | undefined,
    common: InformerOptions,
    options: Pick<ReflectorOptions<T>, 'labelSelector' | 'transform'> = {},
  ) {
    // A list replaces the whole content of its store, so each reflector has its own store, and changes are merged into this one.
    this.#reflectors = (namespaces ?? [undefined]).map(
      (namespace) =>
        new Reflector<T>({
          ...common,
          ...options,
          type,
          store: new Store<T>(),
          ...(namespace === undefined ? {} : { namespace }),
        }),
    );
    this.subscribe((change) => {
      if (change.type === 'deleted') this.store.delete(change.key);
      else this.store.set(change.object);
    });
  }

  subscribe(listener: (change: Change<T>) => void): void {
    for (const reflector of this.#reflectors) reflector.subscribe(listener);
  }

  get hasSynced(): boolean {
    return this.#reflectors.every((reflector) => reflector.hasSynced);
  }

  start(): void {
    for (const reflector of this.#reflectors) reflector.start();
  }

  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.synced(signal)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector[Symbol.asyncDispose]()));
  }
}

/** Informers of all kinds that the gateway reads. */
export interface GatewayInformers extends AsyncDisposable {
  agents: NamespacedInformer<Agent>;
  policies: NamespacedInformer<TrustPolicy>;
  pods: NamespacedInformer<AgentPod>;
  /** Verifier pods of the namespace of the release. Empty without it. */
  verifiers: NamespacedInformer<AgentPod>;
  capabilities: NamespacedInformer<CatalogObject>;
  tools: NamespacedInformer<WatchedTool>;
  approvals: NamespacedInformer<ApprovalSummary>;
  /** Starts the lists and watches; call once, after all listeners have subscribed. */
  start(): void;
  /** Resolves when all caches have synced; rejects with the reason of the signal. */
  synced(signal: AbortSignal): Promise<void>;
  /** Kinds whose cache has not synced yet. */
  waitingFor(): string[];
}

/** Returned without starting, so that listeners can subscribe first. */
export function createGatewayInformers(
  { namespaces, releaseNamespace }: Pick<GatewayConfig, 'namespaces' | 'releaseNamespace'>,
  common: InformerOptions,
): GatewayInformers {
  const agents = new NamespacedInformer<Agent>(AGENTS, namespaces, common, { transform: pruneAgent });
  const policies = new NamespacedInformer<TrustPolicy>(POLICIES, namespaces, common, { transform: prunePolicy });
  const pods = new NamespacedInformer<AgentPod>(PODS, namespaces, common, {
    labelSelector: LABELS.agentPod,
    transform: prunePod,
  });
  const releaseNamespaces = releaseNamespace === undefined ? [] : [releaseNamespace];
  const verifiers = new NamespacedInformer<AgentPod>(PODS, releaseNamespaces, common, {
    labelSelector: LABELS.verifierPod,
    transform: prunePod,
  });
  const capabilities = new NamespacedInformer<CatalogObject>(CAPABILITIES, namespaces, common, {
    transform: pruneCapability,
  });
  const tools = new NamespacedInformer<WatchedTool>(EMERGENT_TOOLS, namespaces, common, { transform: pruneTool });
  const approvals = new NamespacedInformer<ApprovalSummary>(APPROVALS, namespaces, common, {
    transform: (object) => pruneApproval(object as unknown as Approval),
  });
  const all = { agents, policies, pods, verifiers, capabilities, tools, approvals };
  return {
    ...all,
    start: () => Object.values(all).forEach((informer) => informer.start()),
    synced: async (signal) => {
      await Promise.all(Object.values(all).map((informer) => informer.synced(signal)));
    },
    waitingFor: () => Object.entries(all).flatMap(([name, informer]) => (informer.hasSynced ? [] : [name])),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(Object.values(all).map((informer) => informer[Symbol.asyncDispose]()));
    },
  };
}
