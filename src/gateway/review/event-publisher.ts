import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SessionEvents } from '../../nats/session-events.ts';
import type { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/** Publishes events that this gateway observed itself to the clients that follow the session. */
export interface ReviewEvents {
  sink: EventSink;
  /** Resolves when every event was published or failed. */
  flushed(): Promise<void>;
}

export interface ReviewEventOptions {
  key: string;
  failed: (error: unknown) => void;
  /** The sources that no event may quote; absent when the agent does not withhold them. */
  withheld?: WithheldSources | undefined;
}

/** Idempotent per `key`: the same events in the same order are published once. */
export function createReviewEvents(
  events: Pick<SessionEvents, 'append'>,
  clock: Clock,
  { agentUid, agent, session, root }: DeliveryTokenClaims,
  { key, failed, withheld }: ReviewEventOptions,
): ReviewEvents {
  const writes = new SerialQueue();
  let published = 0;
  const append = (event: AgentEvent, time: string, once: string): Promise<unknown> => {
    const stamped = { ...(withheld?.event(event) ?? event), time, agent, session, rootMessage: root };
    return events.append(agentUid, session, { kind: 'event', event: stamped }, { once });
  };
  return {
    sink(event) {
      const time = clock.now().toISOString();
      const once = `${key}/${event.type}/${(published += 1)}`;
      // In order. A client misses an event that cannot be published; the review is not affected.
      writes.run(() => append(event, time, once)).catch(failed);
    },
    flushed: () => writes.idle(),
  };
}
