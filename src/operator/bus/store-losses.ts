import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder, EventSubject } from '../../kube/event-recorder.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import type { Cache } from '../cache.ts';
import {
  FIELD_MANAGER,
  MANAGED_LABEL,
  type PlainObject,
  type StoredAgent,
  type StoredPolicy,
  TYPES,
} from '../kube-types.ts';
import type { BusStore } from '../ports.ts';

export interface StoreLossesDeps {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly log: Logger;
  readonly counts?: Pick<OperatorMetrics, 'count'>;
  /** Of the release. */
  readonly namespace: string;
}

/**
 * Tells people what went with a store of the bus that was lost. Which store there was is written into a ConfigMap, so that a loss is
 * noticed by an operator that was not there, too.
 */
export class StoreLosses {
  readonly #deps: StoreLossesDeps;
  #known: string | undefined;

  constructor(deps: StoreLossesDeps) {
    this.#deps = deps;
  }

  /** Told before it is written down: an operator that ends between the two tells it once more. */
  async look(store: BusStore, signal: AbortSignal): Promise<void> {
    this.#known ??= await this.#read(signal);
    if (this.#known === store.made) return;
    if (this.#known !== undefined) this.#tell(this.#known, store);
    await this.#write(store.made, signal);
    this.#known = store.made;
  }

  #tell(before: string, { made, lost }: BusStore): void {
    const { agents, policies, events, log, counts } = this.#deps;
    log.error({ before, made }, 'the bus lost its store: what waited there, sessions and their tools are gone');
    counts?.count('temper_bus_store_losses_total', {});
    for (const agent of agents.list()) {
      const { name, namespace, uid } = agent.metadata;
      const count = Math.max(lost[uid] ?? 0, agent.status?.queue ?? 0);
      if (count === 0) continue;
      const were =
        count === 1
          ? '1 message that waited or was being worked on is'
          : `${count} messages that waited or were being worked on are`;
      const message = `the bus lost its store: ${were} gone; send again what was not answered`;
      events.record(subjectOf(agent, { name, namespace, uid }), { type: 'Warning', reason: 'MessagesLost', message });
    }
    const message = `the bus lost its store and has another since ${made}: waiting messages, sessions, session tools and memories of its agents are gone; spend goes on from status.spend`;
    for (const policy of policies.list()) {
      const { name, namespace, uid } = policy.metadata;
      events.record(subjectOf(policy, { name, namespace, uid }), { type: 'Warning', reason: 'BusStoreLost', message });
    }
  }

  async #read(signal: AbortSignal): Promise<string | undefined> {
    const { client, namespace } = this.#deps;
    const found = await client.get<PlainObject>(
      TYPES.configMaps,
      { namespace, name: RELEASE_OBJECTS.busStore },
      signal,
    );
    return (found?.['data'] as { made?: string } | undefined)?.made;
  }

  async #write(made: string, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#deps;
    const metadata = { name: RELEASE_OBJECTS.busStore, namespace, labels: { ...MANAGED_LABEL } };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { made } };
    await client.apply(TYPES.configMaps, object, { manager: FIELD_MANAGER, force: true }, signal);
  }
}

function subjectOf({ apiVersion, kind }: { apiVersion: string; kind: string }, metadata: EventSubject['metadata']) {
  return { apiVersion, kind, metadata };
}
