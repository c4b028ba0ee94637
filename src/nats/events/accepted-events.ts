import type { PublishedEvent } from '../../events/event.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { parseJsonBytes, readMessages } from '../jetstream/stream-reader.ts';

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

/** Events between their acceptance and the last message that they cause. Methods throw TEMPER_BUS_*. */
export interface AcceptedEvents {
  /** Idempotent. */
  add(accepted: AcceptedEvent): Promise<void>;
  /** All messages are stored. Idempotent. */
  end(accepted: AcceptedEvent): Promise<void>;
  /** Those that have not ended, oldest first. */
  open(): Promise<AcceptedEvent[]>;
}

/** The server removes the last value of an event that ended. */
const ENDED_TTL = '1s';

export function createAcceptedEvents(connection: JetStreamConnection): AcceptedEvents {
  const stream = bucketStream(BUCKETS.acceptedEvents);
  return {
    async add(accepted) {
      await publish(connection, subjectOf(accepted), accepted as unknown as Json);
    },
    async end(accepted) {
      await publish(connection, subjectOf(accepted), {}, { ttl: ENDED_TTL });
    },
    async open() {
      const events: AcceptedEvent[] = [];
      for await (const { data } of readMessages(connection, stream, bucketSubject(BUCKETS.acceptedEvents, '>'))) {
        const accepted = parseAccepted(parseJsonBytes(data));
        if (accepted !== undefined) events.push(accepted);
      }
      return events;
    },
  };
}

function subjectOf({ ownerUid, namespace, event }: AcceptedEvent): string {
  return bucketSubject(BUCKETS.acceptedEvents, `${token(ownerUid)}.${token(namespace)}.${token(event.id)}`);
}

/** Only gateways write these documents, so their form is checked as far as it decides. */
function parseAccepted(value: Json | undefined): AcceptedEvent | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.event) || !Array.isArray(value.recipients)) return undefined;
  if (typeof value.namespace !== 'string' || typeof value.ownerUid !== 'string') return undefined;
  if (!isEvent(value.event) || !value.recipients.every(isRecipient)) return undefined;
  return value as unknown as AcceptedEvent;
}

export function isEvent({ id, subject, source, agent, time }: JsonObject): boolean {
  return [id, subject, source, agent, time].every((text) => typeof text === 'string');
}

function isRecipient(value: Json): boolean {
  return isJsonObject(value) && typeof value.agentUid === 'string' && typeof value.trigger === 'string';
}
