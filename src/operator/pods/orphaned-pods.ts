import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Cache } from '../kube/cache.ts';
import { type Pod, type StoredAgent, TYPES } from '../kube/types.ts';
import { ownerKeyOf, removePod } from './pod-ownership.ts';

export interface OrphanedPodsDeps {
  readonly client: KubeClient;
  readonly agents: Cache<StoredAgent>;
  readonly pods: Cache<Pod>;
}

/**
 * Deletes the pods of agents that were deleted with `--cascade=orphan`: they have no owner, so neither the garbage collector nor the
 * reconcile of an agent deletes them. The caches may lag behind a new agent, so a pod is deleted only when it is orphaned in two consecutive
 * rounds, and when the API server has no such agent either.
 */
export class OrphanedPods {
  readonly #deps: OrphanedPodsDeps;
  readonly #indexOfAgents: string;
  #previous = new Set<string>();

  /** `indexOfAgents` is the name of the index of agents by UID. */
  constructor(deps: OrphanedPodsDeps, indexOfAgents: string) {
    this.#deps = deps;
    this.#indexOfAgents = indexOfAgents;
  }

  /** Returns the number of deleted pods. Throws ApiError. */
  async collect(signal: AbortSignal): Promise<number> {
    const orphaned = this.#deps.pods.list().filter((pod) => this.#isOrphaned(pod));
    const confirmed = orphaned.filter(({ metadata }) => this.#previous.has(metadata.uid ?? ''));
    this.#previous = new Set(orphaned.map(({ metadata }) => metadata.uid ?? ''));
    let deleted = 0;
    for (const pod of confirmed) {
      if (await this.#hasAgent(pod, signal)) continue;
      await removePod(this.#deps.client, pod, signal);
      deleted += 1;
    }
    return deleted;
  }

  #isOrphaned(pod: Pod): boolean {
    const agentUid = pod.metadata.labels?.[LABELS.agentUid];
    if (agentUid === undefined || pod.metadata.deletionTimestamp !== undefined) return false;
    return ownerKeyOf(pod) === undefined && this.#deps.agents.byIndex(this.#indexOfAgents, agentUid).length === 0;
  }

  async #hasAgent({ metadata }: Pod, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', annotations, labels } = metadata;
    const name = annotations?.[ANNOTATIONS.agent];
    // Without the name of its agent the pod cannot be confirmed, so it stays.
    if (name === undefined) return true;
    const agent = await this.#deps.client.get<StoredAgent>(TYPES.agents, { namespace, name }, signal);
    return agent?.metadata.uid === labels?.[LABELS.agentUid];
  }
}
