import type { Clock } from '../../lib/clock.ts';
import type { Events } from '../../nats/events.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import type { LeaseClaims } from '../lease.ts';

/** What this gateway itself sees of a session, told to whoever follows it. */
export interface ObservedEvents {
  sink: EventSink;
  /** Resolves when all is told or given up. */
  settled(): Promise<void>;
}

/** `key`: what is observed again under it, in the same order, is told once. */
export function observedEvents(
  events: Pick<Events, 'append'>,
  clock: Clock,
  { agentUid, agent, session, root }: LeaseClaims,
  { key, failed }: { key: string; failed: (error: unknown) => void },
): ObservedEvents {
  let tail: Promise<unknown> = Promise.resolve();
  let told = 0;
  const append = (event: AgentEvent, time: string, once: string): Promise<unknown> => {
    const stamped = { ...event, time, agent, session, rootMessage: root };
    return events.append(agentUid, session, { kind: 'event', event: stamped }, { once });
  };
  return {
    sink(event) {
      const time = clock.now().toISOString();
      const once = `${key}/${event.type}/${(told += 1)}`;
      // In the order they came; who follows misses what cannot be told, and the review stands all the same.
      tail = tail.then(() => append(event, time, once)).catch(failed);
    },
    async settled() {
      await tail;
    },
  };
}
