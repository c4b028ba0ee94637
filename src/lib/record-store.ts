import type { Json } from './json.ts';

/** One stored document. */
export interface StoredRecord {
  name: string;
  value: Json;
}

/**
 * The durability of a log line when its append resolves. `synced`: the line survives a power loss. `written`: the line survives a crash of
 * this process; a power loss can still lose it until the next `sync` or synced line of that log.
 */
export type Durability = 'synced' | 'written';

/**
 * Named JSON documents in collections, and append-only logs. A write is durable before it resolves, and a reader never sees a partial write.
 * Collections and logs are `/`-separated paths of `[A-Za-z0-9._-]` segments; a name is one such segment. Methods throw RangeError for any other
 * path, and the file store throws TEMPER_STATE_CORRUPT for a file that it cannot read.
 */
export interface RecordStore {
  /** Creates or replaces the document. */
  put(collection: string, name: string, value: Json): Promise<void>;
  /** Undefined when the document does not exist. */
  get(collection: string, name: string): Promise<Json | undefined>;
  /** All documents of the collection, sorted by name. */
  list(collection: string): Promise<StoredRecord[]>;
  /** Does nothing when the document does not exist. */
  delete(collection: string, name: string): Promise<void>;
  /** Removes the collection, the log of the same path, and every collection and log below it. */
  deleteCollection(collection: string): Promise<void>;
  /** The default durability is `synced`. */
  append(log: string, value: Json, durability?: Durability): Promise<void>;
  /** Resolves when every line appended so far is synced. */
  sync(log: string): Promise<void>;
  /** All lines of the log, in the order in which they were appended. */
  read(log: string): Promise<Json[]>;
}

const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/;

/** Throws RangeError for a path with any other segment, so that a name cannot escape its folder. */
export function assertRecordPath(path: string): void {
  for (const segment of path.split('/')) {
    if (!SEGMENT.test(segment)) throw new RangeError(`not a record path: ${JSON.stringify(path)}`);
  }
}

/** Stores everything in memory. Values are copied on write and on read. */
export function memoryRecordStore(): RecordStore {
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
    async deleteCollection(collection) {
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
