import { type ObservedRecord, parseObserved } from '../../events/platform/observed-object.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { purge, readMessages } from '../jetstream/stream-reader.ts';

/** What events said about objects, one document per object beside what triggers did. Methods throw TEMPER_BUS_*. */
export interface ObservedObjects {
  read(uid: string): Promise<{ record: ObservedRecord | undefined; revision: number }>;
  /** Returns the new revision; undefined when another writer changed the document. */
  write(record: ObservedRecord, revision: number): Promise<number | undefined>;
  /** Idempotent. */
  remove(uid: string): Promise<void>;
  all(): Promise<ObservedRecord[]>;
}

export function createObservedObjects(connection: JetStreamConnection): ObservedObjects {
  const documents = createDocumentStore(connection, BUCKETS.triggers);
  const stream = bucketStream(BUCKETS.triggers);
  return {
    async read(uid) {
      const found = await documents.get(keyOf(uid));
      return { record: parseObserved(found?.value), revision: found?.revision ?? 0 };
    },
    write: (record, revision) => documents.write(keyOf(record.object.uid), record as unknown as Json, revision),
    remove: (uid) => purge(connection, stream, bucketSubject(BUCKETS.triggers, keyOf(uid))),
    async all() {
      const records: ObservedRecord[] = [];
      for await (const { data } of readMessages(connection, stream, bucketSubject(BUCKETS.triggers, '*.observed'))) {
        const record = parseObserved(parseJsonBytes(data));
        if (record !== undefined) records.push(record);
      }
      return records;
    },
  };
}

/** Of the agents among them, data that is removed with them. */
function keyOf(uid: string): string {
  return `${token(uid)}.observed`;
}
