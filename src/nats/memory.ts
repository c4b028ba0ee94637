import { type MemoryRecords, createRecordMemory } from '../agent/tools/memory.ts';
import type { Memory } from '../agent/ports.ts';
import type { Json } from '../lib/json.ts';
import type { StoredRecord } from '../lib/record-store.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import type { AgentQuota } from './residents/storage-quota.ts';
import {
  messageCounts,
  parseJsonBytes,
  lastMessage,
  lastMessages,
  purge,
  readMessages,
} from './jetstream/stream-reader.ts';

const STREAM = bucketStream(BUCKETS.memory);

/**
 * The memory of one agent, and that of its namespace, in a bucket, with the limits and search of `createRecordMemory`. With concurrent
 * writers of one key the last write wins.
 */
export function createNatsMemory(
  connection: JetStreamConnection,
  agent: { uid: string; namespace: string },
  quota?: AgentQuota,
): Memory {
  return createRecordMemory(memoryRecords(connection, quota), token(agent.uid), {
    records: sharedRecords(connection, agent.uid, quota),
    collection: token(agent.namespace),
  });
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

/**
 * Shared records of a namespace. Each is below the UID of the agent that wrote it: its bytes count for that agent, and leave with it. Of
 * the records of several writers the last one holds.
 */
function sharedRecords(connection: JetStreamConnection, uid: string, quota: AgentQuota | undefined): MemoryRecords {
  const ofAll = (namespace: string, name: string): string => bucketSubject(BUCKETS.memory, `*.${namespace}.${name}`);
  const own = memoryRecords(connection, quota);
  return {
    async get(namespace, name) {
      const found = await lastMessage(connection, STREAM, ofAll(namespace, name));
      return found === undefined ? undefined : parseJsonBytes(found.data);
    },
    put: (namespace, name, value) => own.put(`${token(uid)}.${namespace}`, name, value),
    async delete(namespace, name) {
      await own.delete(`${token(uid)}.${namespace}`, name);
      await purge(connection, STREAM, ofAll(namespace, name));
    },
    async list(namespace) {
      const records = new Map<string, StoredRecord>();
      for (const { subject, data } of await lastOfAll(connection, ofAll(namespace, '*'))) {
        const name = subject.split('.').at(-1) ?? '';
        const value = parseJsonBytes(data);
        if (value !== undefined) records.set(name, { name, value });
      }
      return [...records.values()];
    },
    async count(namespace) {
      return Object.keys(await messageCounts(connection, STREAM, ofAll(namespace, '*'))).length;
    },
  };
}

/** The last message of each subject, oldest first. More than the server finds by subject at once are read in order. */
async function lastOfAll(
  connection: JetStreamConnection,
  filter: string,
): Promise<{ subject: string; data: Uint8Array }[]> {
  const found = await lastMessages(connection, STREAM, [filter]);
  if (found !== undefined) return found;
  const all: { subject: string; data: Uint8Array }[] = [];
  for await (const message of readMessages(connection, STREAM, filter)) all.push(message);
  return all;
}
