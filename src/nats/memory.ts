import { type MemoryRecords, recordMemory } from '../agent/memory.ts';
import type { Memory } from '../agent/ports.ts';
import type { Json } from '../lib/json.ts';
import type { StoredRecord } from '../lib/records.ts';
import type { BusConnection } from './connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './names.ts';
import { publish } from './publish.ts';
import { countsOf, jsonOf, lastMessage, storedMessages } from './stored.ts';

const STREAM = bucketStream(BUCKETS.memory);

/** The memory of one agent in a bucket, with the limits and search of `recordMemory`. With concurrent writers of one key the last write wins. */
export function createMemory(connection: BusConnection, agentUid: string): Memory {
  return recordMemory(memoryRecords(connection), token(agentUid));
}

/** A collection is an agent's UID, a record's name the digest of its key. */
function memoryRecords(connection: BusConnection): MemoryRecords {
  const subject = (collection: string, name: string): string => bucketSubject(BUCKETS.memory, `${collection}.${name}`);
  return {
    async get(collection, name): Promise<Json | undefined> {
      const found = await lastMessage(connection, STREAM, subject(collection, name));
      return found === undefined ? undefined : jsonOf(found.data);
    },
    async put(collection, name, value) {
      await publish(connection, subject(collection, name), value);
    },
    async list(collection) {
      const records: StoredRecord[] = [];
      for await (const found of storedMessages(connection, STREAM, subject(collection, '*'))) {
        const value = jsonOf(found.data);
        if (value !== undefined) records.push({ name: found.subject.split('.').at(-1) ?? '', value });
      }
      return records;
    },
    async count(collection) {
      return Object.keys(await countsOf(connection, STREAM, subject(collection, '*'))).length;
    },
  };
}
