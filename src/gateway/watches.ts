import { LABELS } from '../api/cluster.ts';
import { GROUP, VERSION } from '../api/names.ts';
import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import { type CatalogueObject, slimCapability, standingTool, type StandingTool } from './discovery/catalogue.ts';
import { type AgentPod, slimPod } from '../identity/bindings.ts';
import type { ResourceType } from '../kube/client.ts';
import { Reflector, type ReflectorOptions } from '../kube/reflector.ts';
import { type Change, type KubeObject, Store } from '../kube/store.ts';
import { type ApprovalWord, slimApproval, toolStanding, type ToolStanding } from './demotions.ts';

/** What is kept of an EmergentTool: what it is found by, and whether it was taken out of service. */
type WatchedTool = StandingTool & ToolStanding;

const temperType = (kind: string, plural: string): ResourceType => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: true,
});
const AGENTS = temperType('Agent', 'agents');
const POLICIES = temperType('TrustPolicy', 'trustpolicies');
const CAPABILITIES = temperType('Capability', 'capabilities');
export const EMERGENT_TOOLS = temperType('EmergentTool', 'emergenttools');
const APPROVALS = temperType('Approval', 'approvals');
const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

function slimTool(object: WatchedTool): WatchedTool {
  return { ...standingTool(object), ...toolStanding(object) };
}

type Common = Pick<ReflectorOptions<KubeObject>, 'transport' | 'clock' | 'log' | 'metrics' | 'random'>;

/** One kind in some namespaces, or in all, as one store. */
class Watch<T extends KubeObject> implements AsyncDisposable {
  readonly store = new Store<T>();
  readonly #reflectors: Reflector<T>[];

  constructor(
    type: ResourceType,
    namespaces: readonly string[] | undefined,
    common: Common,
    more: Pick<ReflectorOptions<T>, 'labelSelector' | 'transform'> = {},
  ) {
    // A list is the truth about the namespaces it was asked for, so each reflector has a store of its own behind this one.
    this.#reflectors = (namespaces ?? [undefined]).map(
      (namespace) =>
        new Reflector<T>({
          ...common,
          ...more,
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

/** Everything the gateway reads of the cluster. */
export interface Watches extends AsyncDisposable {
  agents: Watch<Agent>;
  policies: Watch<TrustPolicy>;
  pods: Watch<AgentPod>;
  capabilities: Watch<CatalogueObject>;
  tools: Watch<WatchedTool>;
  approvals: Watch<ApprovalWord>;
  start(): void;
  /** Resolves when all first lists are there; rejects with the reason of the signal. */
  synced(signal: AbortSignal): Promise<void>;
  /** Kinds whose first list is not there yet. */
  waitingFor(): string[];
}

/** Not started: whoever listens subscribes first. */
export function createWatches(namespaces: readonly string[] | undefined, common: Common): Watches {
  const agents = new Watch<Agent>(AGENTS, namespaces, common);
  const policies = new Watch<TrustPolicy>(POLICIES, namespaces, common);
  const pods = new Watch<AgentPod>(PODS, namespaces, common, {
    labelSelector: LABELS.agentPod,
    transform: slimPod,
  });
  const capabilities = new Watch<CatalogueObject>(CAPABILITIES, namespaces, common, { transform: slimCapability });
  const tools = new Watch<WatchedTool>(EMERGENT_TOOLS, namespaces, common, { transform: slimTool });
  const approvals = new Watch<ApprovalWord>(APPROVALS, namespaces, common, { transform: slimApproval });
  const all = { agents, policies, pods, capabilities, tools, approvals };
  return {
    ...all,
    start: () => Object.values(all).forEach((watch) => watch.start()),
    synced: async (signal) => {
      await Promise.all(Object.values(all).map((watch) => watch.synced(signal)));
    },
    waitingFor: () => Object.entries(all).flatMap(([name, watch]) => (watch.hasSynced ? [] : [name])),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(Object.values(all).map((watch) => watch[Symbol.asyncDispose]()));
    },
  };
}
