import type { Json } from './json.ts';

/** One stored document. */
export interface StoredRecord {
  name: string;
  value: Json;
}

/**
 * How far a line of a log has come when its append resolves: `synced`, it survives a loss of power; `written`, it survives the end
 * of this process in any manner, and a loss of power may take it until the next `sync` or synced line of that log.
 */
export type Durability = 'synced' | 'written';

/**
 * Named JSON documents in collections, and append-only logs. What a write promised is durable before it resolves,
 * and a reader never sees half of it. Collections and logs are `/`-separated paths of `[A-Za-z0-9._-]` segments, names one such segment.
 */
export interface RecordStore {
  put(collection: string, name: string, value: Json): Promise<void>;
  get(collection: string, name: string): Promise<Json | undefined>;
  /** In order of name. */
  list(collection: string): Promise<StoredRecord[]>;
  delete(collection: string, name: string): Promise<void>;
  /** Removes a collection, everything below it and logs below it. */
  drop(collection: string): Promise<void>;
  /** Synced unless said otherwise. */
  append(log: string, value: Json, durability?: Durability): Promise<void>;
  /** Resolves when every line appended so far is synced. */
  sync(log: string): Promise<void>;
  /** In order of writing. */
  read(log: string): Promise<Json[]>;
}

const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/;

/** Throws RangeError for a path that is not made of plain segments, so that no name can leave its folder. */
export function assertRecordPath(path: string): void {
  for (const segment of path.split('/')) {
    if (!SEGMENT.test(segment)) throw new RangeError(`not a record path: ${JSON.stringify(path)}`);
  }
}

/** Keeps everything in memory. Values are copied on the way in and out. */
export function memoryRecords(): RecordStore {
  const documents = new Map<string, Map<string, Json>>();
  const logs = new Map<string, Json[]>();
  return {
    async put(collection, name, value) {
      assertRecordPath(`${collection}/${name}`);
      const found = documents.get(collection) ?? new Map<string, Json>();
      found.set(name, structuredClone(value));
      documents.set(collection, found);
    },
    async get(collection, name) {
      return structuredClone(documents.get(collection)?.get(name));
    },
    async list(collection) {
      const found = [...(documents.get(collection) ?? [])].map(([name, value]) => ({
        name,
        value: structuredClone(value),
      }));
      return found.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async delete(collection, name) {
      documents.get(collection)?.delete(name);
    },
    async drop(collection) {
      for (const map of [documents, logs]) {
        for (const key of map.keys()) if (key === collection || key.startsWith(`${collection}/`)) map.delete(key);
      }
    },
    async append(log, value) {
      assertRecordPath(log);
      const found = logs.get(log) ?? [];
      found.push(structuredClone(value));
      logs.set(log, found);
    },
    async sync() {},
    async read(log) {
      return structuredClone(logs.get(log) ?? []);
    },
  };
}
