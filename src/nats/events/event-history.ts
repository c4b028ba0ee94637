import type { PublishedEvent } from '../../events/event.ts';
import { MAX_PAST_EVENTS } from '../../events/limits.ts';
import type { EventCounts } from '../../events/past-event.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { STREAMS, subjects, token } from '../jetstream/names.ts';
import { deduplicationId, publish } from '../jetstream/publish.ts';
import { keepLast, readMessages } from '../jetstream/stream-reader.ts';
import { isEvent } from './accepted-events.ts';

/** An event of the history, with the number of messages that it caused. */
type PastEvent = PublishedEvent & EventCounts;

/** The events of each namespace. Methods throw TEMPER_BUS_*. */
export interface EventHistory {
  /** Idempotent for 30 minutes. */
  add(owner: { uid: string; namespace: string }, event: PastEvent): Promise<void>;
  /** Oldest first, at most the latest 1,000 of a day. */
  read(namespace: string): Promise<PastEvent[]>;
}

/** The oldest events are removed when so many more are there, as this process counts. */
const TRIM_STEP = 100;

/** Kept in the stream of the events of sessions, so that it has the same age, and the same share of each tenant. */
export function createEventHistory(connection: JetStreamConnection): EventHistory {
  const added = new Map<string, number>();
  return {
    async add({ uid, namespace }, event) {
      const id = deduplicationId(`${token(uid)}\nevent/${event.id}`);
      await publish(connection, subjects.published(uid, namespace), event as unknown as Json, { id });
      const count = (added.get(namespace) ?? 0) + 1;
      added.set(namespace, count % TRIM_STEP);
      if (count >= TRIM_STEP)
        await keepLast(connection, STREAMS.events, subjects.published('*', namespace), MAX_PAST_EVENTS);
    },
    async read(namespace) {
      const found: PastEvent[] = [];
      for await (const { data } of readMessages(connection, STREAMS.events, subjects.published('*', namespace))) {
        const event = parsePast(parseJsonBytes(data));
        if (event !== undefined) found.push(event);
      }
      return found.slice(-MAX_PAST_EVENTS);
    },
  };
}

function parsePast(value: Json | undefined): PastEvent | undefined {
  if (!isJsonObject(value) || !isEvent(value)) return undefined;
  return typeof value.messages === 'number' && typeof value.refused === 'number'
    ? (value as unknown as PastEvent)
    : undefined;
}
