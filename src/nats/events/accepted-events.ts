import type { PublishedEvent } from '../../events/event.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, subjects, token } from '../jetstream/names.ts';
import { expire, publish } from '../jetstream/publish.ts';
import { readMessages } from '../jetstream/stream-reader.ts';
import { notify } from '../notify/notifications.ts';

/** One message that an event causes. */
export interface Recipient {
  readonly agentUid: string;
  /** Key of the trigger or subscription. */
  readonly trigger: string;
}

/** An event with the agents that get it, decided once. */
export interface AcceptedEvent {
  readonly event: PublishedEvent;
  readonly namespace: string;
  /** The agent that published it, that it is about, or whose webhook got it. */
  readonly ownerUid: string;
  readonly recipients: readonly Recipient[];
}

/** An event that the operator publishes. A gateway decides which agents get it. */
export type AnnouncedEvent = Omit<AcceptedEvent, 'recipients'>;

/** Events between their acceptance and the last message that they cause. Methods throw TEMPER_BUS_*. */
export interface AcceptedEvents {
  /** Idempotent. */
  add(accepted: AcceptedEvent): Promise<void>;
  /** Hands an event to the gateways. Idempotent. */
  announce(event: AnnouncedEvent): Promise<void>;
  /** Stores who gets an announced event. False when another process did. */
  match(accepted: AcceptedEvent): Promise<boolean>;
  /** All messages are stored. Idempotent. */
  end(accepted: AnnouncedEvent): Promise<void>;
  /** Those that have not ended, oldest first. */
  open(): Promise<(AcceptedEvent | AnnouncedEvent)[]>;
}

export function createAcceptedEvents(connection: JetStreamConnection): AcceptedEvents {
  const stream = bucketStream(BUCKETS.acceptedEvents);
  const documents = createDocumentStore(connection, BUCKETS.acceptedEvents);
  return {
    async add(accepted) {
      await publish(connection, subjectOf(accepted), accepted as unknown as Json);
    },
    async announce(announced) {
      await publish(connection, subjectOf(announced), announced as unknown as Json);
      notify(connection, subjects.notifyEvents());
    },
    async match(accepted) {
      const stored = await documents.get(keyOf(accepted));
      const open = parseOpen(stored?.value);
      if (stored === undefined || open === undefined || 'recipients' in open) return false;
      return (await documents.write(keyOf(accepted), accepted as unknown as Json, stored.revision)) !== undefined;
    },
    async end(accepted) {
      await expire(connection, subjectOf(accepted));
    },
    async open() {
      const events: (AcceptedEvent | AnnouncedEvent)[] = [];
      for await (const { data } of readMessages(connection, stream, bucketSubject(BUCKETS.acceptedEvents, '>'))) {
        const accepted = parseOpen(parseJsonBytes(data));
        if (accepted !== undefined) events.push(accepted);
      }
      return events;
    },
  };
}

function subjectOf(event: AnnouncedEvent): string {
  return bucketSubject(BUCKETS.acceptedEvents, keyOf(event));
}

function keyOf({ ownerUid, namespace, event }: AnnouncedEvent): string {
  return `${token(ownerUid)}.${token(namespace)}.${token(event.id)}`;
}

/** Only gateways and the operator write these documents, so their form is checked as far as it decides. */
function parseOpen(value: Json | undefined): AcceptedEvent | AnnouncedEvent | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.event) || !isEvent(value.event)) return undefined;
  const { namespace, ownerUid, recipients } = value;
  if (typeof namespace !== 'string' || typeof ownerUid !== 'string') return undefined;
  if (recipients === undefined) return value as unknown as AnnouncedEvent;
  return Array.isArray(recipients) && recipients.every(isRecipient) ? (value as unknown as AcceptedEvent) : undefined;
}

export function isEvent({ id, subject, source, agent, time }: JsonObject): boolean {
  return [id, subject, source, agent, time].every((text) => typeof text === 'string');
}

function isRecipient(value: Json): boolean {
  return isJsonObject(value) && typeof value.agentUid === 'string' && typeof value.trigger === 'string';
}
