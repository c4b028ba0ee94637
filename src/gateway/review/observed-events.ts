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

export function observedEvents(
  events: Pick<Events, 'append'>,
  clock: Clock,
  { agentUid, agent, session, root }: LeaseClaims,
  failed: (error: unknown) => void,
): ObservedEvents {
  let tail: Promise<unknown> = Promise.resolve();
  const append = (event: AgentEvent, time: string): Promise<unknown> =>
    events.append(agentUid, session, { kind: 'event', event: { ...event, time, agent, session, rootMessage: root } });
  return {
    sink(event) {
      const time = clock.now().toISOString();
      // In the order they came; who follows misses what cannot be told, and the review stands all the same.
      tail = tail.then(() => append(event, time)).catch(failed);
    },
    async settled() {
      await tail;
    },
  };
}
