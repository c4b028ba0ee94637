import { type MemoryRecords, createRecordMemory } from '../agent/tools/memory.ts';
import type { Memory } from '../agent/ports.ts';
import type { Json } from '../lib/json.ts';
import type { StoredRecord } from '../lib/record-store.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import { messageCounts, parseJsonBytes, lastMessage, readMessages } from './jetstream/stream-reader.ts';

const STREAM = bucketStream(BUCKETS.memory);

/** The memory of one agent in a bucket, with the limits and search of `recordMemory`. With concurrent writers of one key the last write wins. */
export function createNatsMemory(connection: JetStreamConnection, agentUid: string): Memory {
  return createRecordMemory(memoryRecords(connection), token(agentUid));
}

/** A collection is an agent's UID, a record's name the digest of its key. */
function memoryRecords(connection: JetStreamConnection): MemoryRecords {
  const subject = (collection: string, name: string): string => bucketSubject(BUCKETS.memory, `${collection}.${name}`);
  return {
    async get(collection, name): Promise<Json | undefined> {
      const found = await lastMessage(connection, STREAM, subject(collection, name));
      return found === undefined ? undefined : parseJsonBytes(found.data);
    },
    async put(collection, name, value) {
      await publish(connection, subject(collection, name), value);
    },
    async list(collection) {
      const records: StoredRecord[] = [];
      for await (const found of readMessages(connection, STREAM, subject(collection, '*'))) {
        const value = parseJsonBytes(found.data);
        if (value !== undefined) records.push({ name: found.subject.split('.').at(-1) ?? '', value });
      }
      return records;
    },
    async count(collection) {
      return Object.keys(await messageCounts(connection, STREAM, subject(collection, '*'))).length;
    },
  };
}
