import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { TriggerStatus } from '../../api/v1alpha1/schedule/trigger-status.ts';
import type { TriggerFires } from '../../events/fires.ts';
import { createTriggerFires } from '../../nats/events/trigger-fires.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import type { StoredAgent } from '../kube/types.ts';
import { timestamp } from '../schedules/schedule-facts.ts';

type Figures = Omit<TriggerFires, 'recent' | 'hour' | 'inHour'>;

/** Agents whose triggers one process remembers. The status of others stays as it is. */
const MAX_AGENTS = 20_000;

/** What the triggers of agents did, in memory. Reads again only what changed. */
export class TriggerStats {
  readonly #byAgent = new LRUCache<string, Map<string, Figures>>(entries(MAX_AGENTS));
  #read = 0;
  #revision = 0;

  async refresh(connection: JetStreamConnection): Promise<void> {
    const store = createTriggerFires(connection);
    const revision = await store.revision();
    if (revision === this.#revision) return;
    // A lost store starts again.
    if (revision < this.#read) {
      this.#byAgent.clear();
      this.#read = 0;
    }
    const { changed, sequence } = await store.changes(this.#read);
    for (const { agentUid, key, fires } of changed) {
      const { recent: _recent, hour: _hour, inHour: _inHour, ...figures } = fires;
      const triggers = this.#byAgent.get(agentUid) ?? new Map<string, Figures>();
      // Of a subscription that is gone.
      if (fires.fires === 0 && fires.refused === undefined) triggers.delete(key);
      else triggers.set(key, figures);
      this.#byAgent.set(agentUid, triggers);
    }
    this.#read = sequence;
    this.#revision = revision;
  }

  /** Undefined until an event matched one of its triggers. */
  of({ metadata, spec }: StoredAgent): TriggerStatus[] | undefined {
    const figures = this.#byAgent.get(metadata.uid);
    const triggers = spec.schedule?.mode === 'Proactive' ? (spec.schedule.triggers ?? []) : [];
    if (figures === undefined || !triggers.some(({ name }) => figures.has(name))) return undefined;
    return triggers.map(({ name }) => statusOf(name, figures.get(name) ?? { fires: 0 }));
  }
}

function statusOf(name: string, { fires, lastFire, refused = 0, lastRefusal }: Figures): TriggerStatus {
  return {
    name,
    fires,
    ...(lastFire === undefined ? {} : { lastFireTime: timestamp(lastFire) }),
    refused,
    ...(lastRefusal === undefined
      ? {}
      : { lastRefusal: { reason: lastRefusal.reason, time: timestamp(lastRefusal.time) } }),
  };
}
