import { type Json, parseJsonBytes } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { createDocumentStore, type DocumentStore } from './jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject } from './jetstream/names.ts';
import { readMessages } from './jetstream/stream-reader.ts';

/** A token of its own, so that the keys of providers in this bucket cannot meet it. */
const PREFIX = 'judges.';

/** What canaries showed about judges, for all gateways of an installation. Methods throw TEMPER_BUS_*. */
export interface NatsJudgeStandings extends DocumentStore {
  list(): Promise<Json[]>;
}

export function createNatsJudgeStandings(connection: JetStreamConnection): NatsJudgeStandings {
  const documents = createDocumentStore(connection, BUCKETS.health);
  return {
    get: (key) => documents.get(PREFIX + key),
    write: (key, value, revision) => documents.write(PREFIX + key, value, revision),
    async list() {
      const found: Json[] = [];
      const subject = bucketSubject(BUCKETS.health, `${PREFIX}*`);
      for await (const { data } of readMessages(connection, bucketStream(BUCKETS.health), subject)) {
        const value = parseJsonBytes(data);
        if (value !== undefined) found.push(value);
      }
      return found;
    },
  };
}
