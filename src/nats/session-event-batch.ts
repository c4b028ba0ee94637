import { isJsonObject, type Json } from '../lib/json.ts';
import type { StampedEvent } from '../tools/events.ts';
import { parseEnd, type SessionEnd, type StoredSessionEnd } from './session-replies.ts';

/** One event of a session. */
export type SessionEvent = { kind: 'event'; event: StampedEvent } | SessionEnd;

/** Where a reader continues behind a line. */
export interface EventPosition {
  /** Stream sequence: the reader gets what was stored after it. */
  seq: number;
  /** Number of lines of the batch stored next that the reader has read already. Absent: none. */
  skip?: number;
}

/** An event with the position behind it. Assignable to `SessionStreamLine` of the user API. */
export type StoredSessionEvent = SessionEvent & EventPosition;

/** One stored message: events that were stored at once, or the end of a message. */
export type StoredBatch = { kind: 'events'; seq: number; events: StampedEvent[] } | StoredSessionEnd;

/** Bytes of one stored batch; an event above it is stored alone. */
const MAX_BATCH_BYTES = 160 * 1_024;

/** The events in their order, split so that each batch fits into one message of NATS. Equal events are split equally. */
export function splitEvents(events: readonly StampedEvent[]): StampedEvent[][] {
  const batches: StampedEvent[][] = [];
  let free = 0;
  for (const event of events) {
    const bytes = Buffer.byteLength(JSON.stringify(event)) + 1;
    const last = batches.at(-1);
    if (last === undefined || bytes > free) {
      batches.push([event]);
      free = MAX_BATCH_BYTES - bytes;
    } else {
      last.push(event);
      free -= bytes;
    }
  }
  return batches;
}

export function toStoredEvents(events: readonly StampedEvent[]): Json {
  return { kind: 'events', events: events as unknown as Json };
}

/** Parses a stored message; undefined for one without a valid event. Pods report events: only `type` and `time` are validated. */
export function parseBatch(value: Json | undefined, seq: number): StoredBatch | undefined {
  if (!isJsonObject(value)) return undefined;
  if (value.kind !== 'events' && value.kind !== 'event') {
    const end = parseEnd(value);
    return end === undefined ? undefined : { ...end, seq };
  }
  const stored = value.kind === 'event' ? [value.event] : value.events;
  const events = Array.isArray(stored) ? (stored.filter(isEvent) as unknown as StampedEvent[]) : [];
  return events.length === 0 ? undefined : { kind: 'events', seq, events };
}

function isEvent(event: Json | undefined): boolean {
  return isJsonObject(event) && typeof event.type === 'string' && typeof event.time === 'string';
}

/** The lines of batches behind a position. A reader that stops within a batch continues there. */
export async function* unfold(
  batches: AsyncIterable<StoredBatch>,
  { seq: after, skip = 0 }: EventPosition,
): AsyncGenerator<StoredSessionEvent> {
  let isFirst = true;
  for await (const batch of batches) {
    const skipped = isFirst && batch.seq === after + 1 ? skip : 0;
    isFirst = false;
    if (batch.kind !== 'events') {
      yield batch;
      continue;
    }
    const { seq, events } = batch;
    for (const [index, event] of events.entries()) {
      if (index < skipped) continue;
      const isLast = index === events.length - 1;
      yield { kind: 'event', event, ...(isLast ? { seq } : { seq: seq - 1, skip: index + 1 }) };
    }
  }
}
