import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { isSharedKey } from '../../policy/shared-keys.ts';
import type { Memory, MemoryHit, MemoryValue } from '../ports.ts';
import { byKey, rankTexts, textOf } from './memory-ranking.ts';
import { memoryEntry } from './memory-scan.ts';

const MAX_KEY_CHARACTERS = 256;

/** The operations that reading and writing single keys needs. */
export interface KeyedRecords extends Pick<RecordStore, 'get' | 'put' | 'delete'> {
  /** Number of records in a collection. */
  count(collection: string): Promise<number>;
}

/** The record store operations that a memory needs. */
type MemoryRecords = Pick<RecordStore, 'get' | 'put' | 'list' | 'delete'>;

/** An entry that a search or a list found. */
interface Found {
  key: string;
  tainted: boolean;
  value(): Json;
}

/** With a query the entries that match, best match first; else all, by key. */
type Find = (query?: string) => Promise<readonly Found[]>;

/** Where the entries of one owner are: those of an agent, or those that the agents of a namespace share. */
interface MemoryScope {
  readonly records: KeyedRecords;
  readonly collection: string;
  readonly name: string;
  readonly maxEntries: number;
  readonly maxValueCharacters: number;
}

/** A search reads all shared entries, so that they are fewer bytes than those of an agent. */
const OWN = { name: 'memory', maxEntries: 1_000, maxValueCharacters: 65_536 } as const;
const SHARED = { name: 'shared memory', maxEntries: 1_000, maxValueCharacters: 8_192 } as const;

/**
 * An agent's memory, one document per key in `collection` (e.g. `memory/team-a.analyst`), and the memory of its namespace in `shared`.
 * Beyond the number of keys `set` throws TEMPER_QUOTA_EXCEEDED, for a value that is too long TEMPER_TOOL_INPUT_INVALID. Without `shared`
 * the agent is alone, and shared keys are its own. A search works in the thread of the caller.
 */
export function createRecordMemory(
  records: MemoryRecords,
  collection: string,
  shared?: { records: MemoryRecords; collection: string },
): Memory {
  const counted = ({ records: of, ...more }: { records: MemoryRecords; collection: string }) => ({
    ...more,
    records: { get: of.get.bind(of), put: of.put.bind(of), delete: of.delete.bind(of), count: countIn(of) },
  });
  const all = async (): Promise<MemoryHit[]> => {
    const own = await entriesOf(records, collection);
    if (shared === undefined) return own;
    const common = await entriesOf(shared.records, shared.collection);
    // What an agent stored under a shared key when it was alone is not visible among others.
    return [...own.filter(({ key }) => !isSharedKey(key)), ...common.filter(({ key }) => isSharedKey(key))];
  };
  return {
    ...createKeyedMemory(counted({ records, collection }), shared === undefined ? undefined : counted(shared)),
    ...createFoundMemory(async (query) => {
      const found = (await all()).map((hit) => ({ ...hit, text: query === undefined ? '' : textOf(hit.value) }));
      const ordered = query === undefined ? byKey(found) : rankTexts(found, query);
      return ordered.map(({ key, tainted, value }) => ({ key, tainted, value: () => value }));
    }),
  };
}

/** Reads and writes single keys, with the limits of `createRecordMemory`. */
export function createKeyedMemory(
  own: Pick<MemoryScope, 'records' | 'collection'>,
  shared?: Pick<MemoryScope, 'records' | 'collection'>,
): Pick<Memory, 'get' | 'set' | 'delete'> {
  const ofAgent: MemoryScope = { ...OWN, ...own };
  const common: MemoryScope = shared === undefined ? ofAgent : { ...SHARED, ...shared };
  const scopeOf = (key: string): MemoryScope => (isSharedKey(key) ? common : ofAgent);
  return {
    async get(key) {
      const scope = scopeOf(key);
      const found = await scope.records.get(scope.collection, nameOf(key));
      const entry = found === undefined ? undefined : memoryEntry(found);
      return entry === undefined ? undefined : { value: entry.value, tainted: entry.tainted };
    },
    set: (key, value, { tainted } = { tainted: false }) => setIn(scopeOf(key), key, { value, tainted }),
    async delete(key) {
      const scope = scopeOf(key);
      const name = nameOf(key);
      const found = await scope.records.get(scope.collection, name);
      if (found !== undefined) await scope.records.delete(scope.collection, name);
      return found !== undefined;
    },
  };
}

/** Lists and searches what `find` finds. Only as many entries as the result has are read by their values. */
export function createFoundMemory(find: Find): Pick<Memory, 'list' | 'search'> {
  return {
    async list(prefix, limit, isReadable) {
      const found = (await find()).filter(({ key }) => key.startsWith(prefix) && isReadable(key));
      const listed = found.slice(0, Math.max(0, limit));
      const tainted = listed.some((entry) => entry.tainted);
      return { keys: listed.map(({ key }) => key), complete: found.length <= limit, tainted };
    },
    async search(query, limit, isReadable) {
      const hits: MemoryHit[] = [];
      for (const found of await find(query)) {
        if (hits.length >= limit) break;
        const { key, tainted } = found;
        if (isReadable(key)) hits.push({ key, value: found.value(), tainted });
      }
      return hits;
    },
  };
}

async function entriesOf(records: MemoryRecords, collection: string): Promise<MemoryHit[]> {
  const found = await records.list(collection);
  return found.flatMap(({ value }) => memoryEntry(value) ?? []);
}

function countIn(records: MemoryRecords): KeyedRecords['count'] {
  return async (collection) => (await records.list(collection)).length;
}

async function setIn(scope: MemoryScope, key: string, { value, tainted }: MemoryValue): Promise<void> {
  const { records, collection, maxEntries, maxValueCharacters } = scope;
  const name = nameOf(key);
  const size = JSON.stringify(value).length;
  if (size > maxValueCharacters) {
    throw new TemperError(
      'TEMPER_TOOL_INPUT_INVALID',
      `the value has ${size} characters; ${scope.name} keeps at most ${maxValueCharacters}, so write a file instead`,
    );
  }
  if ((await records.get(collection, name)) === undefined && (await records.count(collection)) >= maxEntries) {
    throw new TemperError(
      'TEMPER_QUOTA_EXCEEDED',
      `${scope.name} holds ${maxEntries} keys, which is all it keeps; delete one of them, or set one again`,
    );
  }
  await records.put(collection, name, { key, value, tainted });
}

/** Hashes the key: keys are arbitrary text, record names are not. */
function nameOf(key: string): string {
  if (key === '' || key.length > MAX_KEY_CHARACTERS) {
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `a memory key has 1 to ${MAX_KEY_CHARACTERS} characters`);
  }
  return sha256(key).slice('sha256:'.length);
}
