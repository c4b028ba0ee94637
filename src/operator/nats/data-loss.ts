import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { EventSubject } from '../../kube/events/event-note.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import type { Cache } from '../kube/cache.ts';
import {
  FIELD_MANAGER,
  MANAGED_LABEL,
  type PlainObject,
  type StoredAgent,
  type StoredPolicy,
  TYPES,
} from '../kube/types.ts';
import type { NatsStore } from '../ports.ts';

export interface DataLossDetectorDeps {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly log: Logger;
  readonly operatorMetrics: Pick<OperatorMetrics, 'count'> | undefined;
  /** Release namespace. */
  readonly namespace: string;
}

/**
 * Detects the loss of the NATS store and reports what was lost, with Events. The creation time of the known store is stored in a ConfigMap,
 * so that an operator detects a loss that happened while it was not running.
 */
export class DataLossDetector {
  readonly #deps: DataLossDetectorDeps;
  #known: string | undefined;

  constructor(deps: DataLossDetectorDeps) {
    this.#deps = deps;
  }

  /** Compares the store with the known one. Reports before it stores the new creation time, so a crash in between reports the loss twice. */
  async check(store: NatsStore, signal: AbortSignal): Promise<void> {
    this.#known ??= await this.#read(signal);
    if (this.#known === store.createdAt) return;
    if (this.#known !== undefined) this.#report(this.#known, store);
    await this.#write(store.createdAt, signal);
    this.#known = store.createdAt;
  }

  #report(before: string, { createdAt, lostMessages: lost }: NatsStore): void {
    const { agents, policies, events, log, operatorMetrics } = this.#deps;
    log.error({ before, createdAt }, 'NATS lost its store: waiting messages, sessions and session tools are lost');
    operatorMetrics?.count('temper_nats_data_loss_total', {});
    for (const agent of agents.list()) {
      const { name, namespace, uid } = agent.metadata;
      const count = Math.max(lost[uid] ?? 0, agent.status?.queue ?? 0);
      if (count === 0) continue;
      const messages =
        count === 1
          ? '1 message that was waiting or in progress is'
          : `${count} messages that were waiting or in progress are`;
      const message = `NATS lost its store: ${messages} lost; send unanswered messages again`;
      events.record(subjectOf(agent, { name, namespace, uid }), { type: 'Warning', reason: 'MessagesLost', message });
    }
    const message = `NATS lost its store and has a new one since ${createdAt}: waiting messages, sessions, session tools and memories of its agents are lost; spend is restored from status.spend`;
    for (const policy of policies.list()) {
      const { name, namespace, uid } = policy.metadata;
      events.record(subjectOf(policy, { name, namespace, uid }), { type: 'Warning', reason: 'NATSDataLost', message });
    }
  }

  async #read(signal: AbortSignal): Promise<string | undefined> {
    const { client, namespace } = this.#deps;
    const found = await client.get<PlainObject>(
      TYPES.configMaps,
      { namespace, name: RELEASE_OBJECTS.natsStore },
      signal,
    );
    return (found?.['data'] as { createdAt?: string } | undefined)?.createdAt;
  }

  async #write(createdAt: string, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#deps;
    const metadata = { name: RELEASE_OBJECTS.natsStore, namespace, labels: { ...MANAGED_LABEL } };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { createdAt } };
    await client.apply(TYPES.configMaps, object, { manager: FIELD_MANAGER, force: true }, signal);
  }
}

function subjectOf({ apiVersion, kind }: { apiVersion: string; kind: string }, metadata: EventSubject['metadata']) {
  return { apiVersion, kind, metadata };
}
