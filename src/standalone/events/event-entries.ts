import type { ListedEvent } from '../../events/past-event.ts';
import { parseFires, type TriggerFires } from '../../events/fires.ts';
import type { Subscription } from '../../events/subscription.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';

/** What changes the events of an agent. */
export type EventEntry =
  | { op: 'event-published'; agent: string; event: ListedEvent }
  /** `trigger`: the name of a trigger, or the id of a subscription. */
  | { op: 'trigger-fired'; agent: string; trigger: string; fires: TriggerFires }
  | { op: 'event-subscribed'; agent: string; subscription: Subscription }
  | { op: 'event-unsubscribed'; agent: string; id: string };

/** The events that one agent published or that are about it, and what its triggers and subscriptions did. */
export interface EventRecords {
  /** By id, oldest first. */
  readonly published: Map<string, ListedEvent>;
  /** By trigger, the one that fired last at the end. */
  readonly fires: Map<string, TriggerFires>;
  /** By id, oldest first. */
  readonly subscriptions: Map<string, Subscription>;
}

/** More than an agent can have; the rest are of triggers that its manifest had before. */
const MAX_FIRES = 200;

export function noEventRecords(): EventRecords {
  return { published: new Map(), fires: new Map(), subscriptions: new Map() };
}

export function hasEventRecords({ published, fires, subscriptions }: EventRecords): boolean {
  return published.size + fires.size + subscriptions.size > 0;
}

export function isEventEntry(entry: { op: string }): entry is EventEntry {
  return ['event-published', 'trigger-fired', 'event-subscribed', 'event-unsubscribed'].includes(entry.op);
}

export function applyEventEntry({ published, fires, subscriptions }: EventRecords, entry: EventEntry): void {
  if (entry.op === 'event-published') published.set(entry.event.id, entry.event);
  else if (entry.op === 'event-subscribed') subscriptions.set(entry.subscription.id, entry.subscription);
  else if (entry.op === 'event-unsubscribed') {
    subscriptions.delete(entry.id);
    fires.delete(entry.id);
  } else {
    fires.delete(entry.trigger);
    fires.set(entry.trigger, entry.fires);
    const [oldest] = fires.keys();
    if (fires.size > MAX_FIRES && oldest !== undefined) fires.delete(oldest);
  }
}

/** Removes the oldest events of a namespace beyond this number. */
export function trimPublished(ofNamespace: readonly EventRecords[], kept: number): void {
  let count = ofNamespace.reduce((sum, { published }) => sum + published.size, 0);
  for (; count > kept; count -= 1) {
    const oldest = ofNamespace.flatMap((records) => {
      const [event] = records.published.values();
      return event === undefined ? [] : [{ records, event }];
    });
    const [first] = oldest.sort((a, b) => (a.event.time < b.event.time ? -1 : 1));
    first?.records.published.delete(first.event.id);
  }
}

/** The stored form of a snapshot. */
export function storedEventRecords({ published, fires, subscriptions }: EventRecords): Json {
  return {
    published: [...published.values()],
    fires: [...fires],
    subscriptions: [...subscriptions.values()],
  } as unknown as Json;
}

/** Reads a snapshot; what cannot be read is left out. */
export function parseEventRecords(value: Json | undefined): EventRecords {
  const records = noEventRecords();
  if (!isJsonObject(value)) return records;
  for (const event of listOf(value['published'])) {
    if (isJsonObject(event) && typeof event['id'] === 'string')
      records.published.set(event['id'], event as unknown as ListedEvent);
  }
  for (const entry of listOf(value['fires'])) {
    const [trigger, fires] = listOf(entry);
    if (typeof trigger === 'string') records.fires.set(trigger, parseFires(fires));
  }
  for (const subscription of listOf(value['subscriptions'])) {
    if (isJsonObject(subscription) && typeof subscription['id'] === 'string')
      records.subscriptions.set(subscription['id'], subscription as unknown as Subscription);
  }
  return records;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
