import { type FireDecision, type FireLimits, fire, parseFires, type TriggerFires } from '../../events/fires.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, token } from '../jetstream/names.ts';

/** What the triggers and subscriptions of agents did. Methods throw TEMPER_BUS_*. */
export interface TriggerFireStore {
  /** Decides by compare-and-swap whether the trigger fires for an event; a repeated call for one event fires once. */
  fire(agentUid: string, key: string, limits: FireLimits, event: string): Promise<FireDecision>;
  read(agentUid: string, key: string): Promise<TriggerFires>;
}

const MAX_ATTEMPTS = 20;

export function createTriggerFires(connection: JetStreamConnection): TriggerFireStore {
  const documents = createDocumentStore(connection, BUCKETS.triggers);
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
    async read(agentUid, key) {
      return parseFires((await documents.get(keyOf(agentUid, key)))?.value);
    },
  };
}

function keyOf(agentUid: string, key: string): string {
  return `${token(agentUid)}.fires.${token(key)}`;
}
