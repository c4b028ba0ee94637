import { createFoundMemory, createKeyedMemory, type KeyedRecords } from '../agent/tools/memory.ts';
import { type MemoryBytes, type MemoryScan, scanHere, valueOf } from '../agent/tools/memory-scan.ts';
import type { Memory } from '../agent/ports.ts';
import { type Json, parseJsonBytes } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import type { AgentQuota } from './residents/storage-quota.ts';
import { countMessages, lastMessage, lastMessages, purge, readMessages } from './jetstream/stream-reader.ts';

const STREAM = bucketStream(BUCKETS.memory);

/**
 * The memory of one agent, and that of its namespace, in a bucket, with the limits and search of `createRecordMemory`. With concurrent
 * writers of one key the last write wins. Searches and lists read what `scan` asks for.
 */
export function createNatsMemory(
  connection: JetStreamConnection,
  agent: { uid: string; namespace: string },
  quota?: AgentQuota,
  scan: MemoryScan = scanHere,
): Memory {
  const [uid, namespace] = [token(agent.uid), token(agent.namespace)];
  const records = memoryRecords(connection, quota);
  const shared = { records: sharedRecords(connection, uid, quota), collection: namespace };
  return {
    ...createKeyedMemory({ records, collection: uid }, shared),
    ...createFoundMemory(async (query) => {
      let memory: MemoryBytes = { own: [], shared: [] };
      const found = await scan(query, async () => {
        memory = { own: await ownBytes(connection, uid), shared: await sharedBytes(connection, namespace) };
        return memory;
      });
      return found.map((entry) => ({ ...entry, value: () => valueOf(memory, entry) ?? null }));
    }),
  };
}

async function ownBytes(connection: JetStreamConnection, uid: string): Promise<Uint8Array[]> {
  const found: Uint8Array[] = [];
  const all = bucketSubject(BUCKETS.memory, `${uid}.*`);
  for await (const { data } of readMessages(connection, STREAM, all)) found.push(data);
  return found;
}

/** Of the records of several writers of a key the last one. */
async function sharedBytes(connection: JetStreamConnection, namespace: string): Promise<Uint8Array[]> {
  const all = bucketSubject(BUCKETS.memory, `*.${namespace}.*`);
  const found = new Map<string, Uint8Array>();
  // More than the server finds by subject at once are read in order.
  const messages = (await lastMessages(connection, STREAM, [all])) ?? readMessages(connection, STREAM, all);
  for await (const { subject, data } of messages) found.set(nameIn(subject), data);
  return [...found.values()];
}

function nameIn(subject: string): string {
  return subject.split('.').at(-1) ?? '';
}

/** A collection is an agent's UID, a record's name the digest of its key. */
function memoryRecords(connection: JetStreamConnection, quota: AgentQuota | undefined): KeyedRecords {
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
    count: (collection) => countMessages(connection, STREAM, subject(collection, '*')),
  };
}

/**
 * Shared records of a namespace. Each is below the UID of the agent that wrote it: its bytes count for that agent, and leave with it. Of
 * the records of several writers the last one holds.
 */
function sharedRecords(connection: JetStreamConnection, uid: string, quota: AgentQuota | undefined): KeyedRecords {
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
    count: (namespace) => countMessages(connection, STREAM, ofAll(namespace, '*')),
  };
}
