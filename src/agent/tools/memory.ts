import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { isSharedKey } from '../../policy/shared-keys.ts';
import type { Memory, MemoryHit, MemoryValue } from '../ports.ts';
import { rankEntries } from './memory-ranking.ts';

const MAX_KEY_CHARACTERS = 256;

/** The record store operations that a memory needs. */
export interface MemoryRecords extends Pick<RecordStore, 'get' | 'put' | 'list' | 'delete'> {
  /** Number of records in a collection; without it, the records are listed and counted. */
  count?(collection: string): Promise<number>;
}

/** Where the entries of one owner are: those of an agent, or those that the agents of a namespace share. */
interface MemoryScope {
  readonly records: MemoryRecords;
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
 * the agent is alone, and shared keys are its own.
 */
export function createRecordMemory(
  records: MemoryRecords,
  collection: string,
  shared?: { records: MemoryRecords; collection: string },
): Memory {
  const own: MemoryScope = { ...OWN, records, collection };
  const common: MemoryScope | undefined = shared === undefined ? undefined : { ...SHARED, ...shared };
  const scopeOf = (key: string): MemoryScope => (isSharedKey(key) ? (common ?? own) : own);
  const all = async (): Promise<MemoryHit[]> => {
    const found = await Promise.all([own, ...(common === undefined ? [] : [common])].map(entriesOf));
    // What an agent stored under a shared key when it was alone is not visible among others.
    return found.flat().filter(({ key, scope }) => scope === scopeOf(key));
  };
  return {
    async get(key) {
      const scope = scopeOf(key);
      const found = await scope.records.get(scope.collection, nameOf(key));
      const entry = found === undefined ? undefined : entryFrom(found);
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
    async list(prefix, limit, isReadable) {
      const found = (await all())
        .filter(({ key }) => key.startsWith(prefix) && isReadable(key))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      const listed = found.slice(0, Math.max(0, limit));
      const tainted = listed.some((entry) => entry.tainted);
      return { keys: listed.map(({ key }) => key), complete: found.length <= limit, tainted };
    },
    async search(query, limit, isReadable) {
      const ranked = rankEntries(await all(), query);
      const readable = ranked.filter(({ key }) => isReadable(key)).slice(0, Math.max(0, limit));
      return readable.map(({ key, value, tainted }) => ({ key, value, tainted }));
    },
  };
}

async function entriesOf(scope: MemoryScope): Promise<(MemoryHit & { scope: MemoryScope })[]> {
  const found = await scope.records.list(scope.collection);
  return found.flatMap(({ value }) => {
    const entry = entryFrom(value);
    return entry === undefined ? [] : [{ ...entry, scope }];
  });
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
  if ((await records.get(collection, name)) === undefined && (await countOf(scope)) >= maxEntries) {
    throw new TemperError(
      'TEMPER_QUOTA_EXCEEDED',
      `${scope.name} holds ${maxEntries} keys, which is all it keeps; delete one of them, or set one again`,
    );
  }
  await records.put(collection, name, { key, value, tainted });
}

async function countOf({ records, collection }: MemoryScope): Promise<number> {
  return (await records.count?.(collection)) ?? (await records.list(collection)).length;
}

/** Hashes the key: keys are arbitrary text, record names are not. */
function nameOf(key: string): string {
  if (key === '' || key.length > MAX_KEY_CHARACTERS) {
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `a memory key has 1 to ${MAX_KEY_CHARACTERS} characters`);
  }
  return sha256(key).slice('sha256:'.length);
}

function entryFrom(record: Json): MemoryHit | undefined {
  if (!isJsonObject(record) || typeof record.key !== 'string' || record.value === undefined) return undefined;
  // A record without the member is of a release that did not know what its session had read.
  return { key: record.key, value: record.value, tainted: record.tainted !== false };
}
