import { type MemoryRecords, createRecordMemory } from '../agent/tools/memory.ts';
import type { Memory } from '../agent/ports.ts';
import type { Json } from '../lib/json.ts';
import type { StoredRecord } from '../lib/record-store.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import type { AgentQuota } from './residents/storage-quota.ts';
import { messageCounts, parseJsonBytes, lastMessage, purge, readMessages } from './jetstream/stream-reader.ts';

const STREAM = bucketStream(BUCKETS.memory);

/** The memory of one agent in a bucket, with the limits and search of `recordMemory`. With concurrent writers of one key the last write wins. */
export function createNatsMemory(connection: JetStreamConnection, agentUid: string, quota?: AgentQuota): Memory {
  return createRecordMemory(memoryRecords(connection, quota), token(agentUid));
}

/** A collection is an agent's UID, a record's name the digest of its key. */
function memoryRecords(connection: JetStreamConnection, quota: AgentQuota | undefined): MemoryRecords {
  const subject = (collection: string, name: string): string => bucketSubject(BUCKETS.memory, `${collection}.${name}`);
  return {
    async get(collection, name): Promise<Json | undefined> {
      const found = await lastMessage(connection, STREAM, subject(collection, name));
      return found === undefined ? undefined : parseJsonBytes(found.data);
    },
    async put(collection, name, value) {
      const key = subject(collection, name);
      // A new value replaces the old one, so only the difference counts; a repeated one adds nothing.
      const before = quota === undefined ? undefined : await lastMessage(connection, STREAM, key);
      const added = Buffer.byteLength(JSON.stringify(value)) - (before?.data.byteLength ?? 0);
      await quota?.reserve('memory', Math.max(0, added));
      try {
        await publish(connection, key, value);
      } catch (error) {
        quota?.release('memory', Math.max(0, added));
        throw error;
      }
      if (added < 0) quota?.release('memory', -added);
    },
    async delete(collection, name) {
      const key = subject(collection, name);
      const before = quota === undefined ? undefined : await lastMessage(connection, STREAM, key);
      await purge(connection, STREAM, key);
      if (before !== undefined) quota?.release('memory', before.data.byteLength);
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
