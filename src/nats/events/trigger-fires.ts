import {
  type FireDecision,
  type FireLimits,
  fire,
  parseFires,
  refused,
  type TriggerFires,
} from '../../events/fires.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { expire } from '../jetstream/publish.ts';
import { lastMessage, readMessages } from '../jetstream/stream-reader.ts';

/** What the triggers and subscriptions of agents did. Methods throw TEMPER_BUS_*. */
export interface TriggerFireStore {
  /** Decides by compare-and-swap whether the trigger fires for an event; a repeated call for one event fires once. */
  fire(agentUid: string, key: string, limits: FireLimits, event: string): Promise<FireDecision>;
  /** Counts a matching event that gave no message. One that another process counts at the same moment is left out. */
  refuse(agentUid: string, key: string, reason: string): Promise<void>;
  read(agentUid: string, key: string): Promise<TriggerFires>;
  /** Forgets a subscription that is gone. Idempotent. */
  remove(agentUid: string, key: string): Promise<void>;
  /** What changed after this sequence, and the sequence to continue with. */
  changes(after: number): Promise<{ changed: ChangedFires[]; sequence: number }>;
  /** Changes with every write; 0 while nothing was written. */
  revision(): Promise<number>;
}

/** What one trigger or subscription did. */
interface ChangedFires {
  readonly agentUid: string;
  readonly key: string;
  readonly fires: TriggerFires;
}

const MAX_ATTEMPTS = 20;

export function createTriggerFires(connection: JetStreamConnection): TriggerFireStore {
  const documents = createDocumentStore(connection, BUCKETS.triggers);
  const stream = bucketStream(BUCKETS.triggers);
  return {
    async fire(agentUid, key, limits, event) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const stored = await documents.get(keyOf(agentUid, key));
        const decision = fire(parseFires(stored?.value), limits, event, connection.clock.now().getTime());
        if ('refused' in decision || decision.fires === undefined) return decision;
        const value = decision.fires as unknown as Json;
        if ((await documents.write(keyOf(agentUid, key), value, stored?.revision ?? 0)) !== undefined) return decision;
      }
      throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the state of a trigger changed too often; try again', {
        retry: 'backoff',
      });
    },
    async refuse(agentUid, key, reason) {
      const stored = await documents.get(keyOf(agentUid, key));
      const after = refused(parseFires(stored?.value), reason, connection.clock.now().getTime());
      await documents.write(keyOf(agentUid, key), after as unknown as Json, stored?.revision ?? 0);
    },
    remove: (agentUid, key) => expire(connection, bucketSubject(BUCKETS.triggers, keyOf(agentUid, key))),
    async changes(after) {
      const changed: ChangedFires[] = [];
      let sequence = after;
      for await (const { data, seq, subject } of readMessages(connection, stream, everyTrigger(), after + 1)) {
        const [agentUid, , key] = subject.split('.').slice(-3);
        if (agentUid !== undefined && key !== undefined)
          changed.push({ agentUid, key, fires: parseFires(parseJsonBytes(data)) });
        sequence = seq;
      }
      return { changed, sequence };
    },
    async revision() {
      return (await lastMessage(connection, stream, everyTrigger()))?.seq ?? 0;
    },
    async read(agentUid, key) {
      return parseFires((await documents.get(keyOf(agentUid, key)))?.value);
    },
  };
}

function keyOf(agentUid: string, key: string): string {
  return `${token(agentUid)}.fires.${token(key)}`;
}

function everyTrigger(): string {
  return bucketSubject(BUCKETS.triggers, '*.fires.*');
}
