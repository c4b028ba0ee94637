import type { Clock } from '../../lib/clock.ts';
import type { Events } from '../../nats/events.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import type { LeaseClaims } from '../lease.ts';

/** Publishes events that this gateway observed itself to the clients that follow the session. */
export interface ObservedEvents {
  sink: EventSink;
  /** Resolves when every event was published or failed. */
  settled(): Promise<void>;
}

/** Idempotent per `key`: the same events in the same order are published once. */
export function observedEvents(
  events: Pick<Events, 'append'>,
  clock: Clock,
  { agentUid, agent, session, root }: LeaseClaims,
  { key, failed }: { key: string; failed: (error: unknown) => void },
): ObservedEvents {
  let tail: Promise<unknown> = Promise.resolve();
  let published = 0;
  const append = (event: AgentEvent, time: string, once: string): Promise<unknown> => {
    const stamped = { ...event, time, agent, session, rootMessage: root };
    return events.append(agentUid, session, { kind: 'event', event: stamped }, { once });
  };
  return {
    sink(event) {
      const time = clock.now().toISOString();
      const once = `${key}/${event.type}/${(published += 1)}`;
      // In order. A client misses an event that cannot be published; the review is not affected.
      tail = tail.then(() => append(event, time, once)).catch(failed);
    },
    async settled() {
      await tail;
    },
  };
}
