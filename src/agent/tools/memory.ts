import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { Memory, MemoryHit } from '../ports.ts';
import { rankEntries } from './memory-ranking.ts';

const MAX_KEY_CHARACTERS = 256;
const MAX_VALUE_CHARACTERS = 65_536;
const MAX_ENTRIES = 1_000;

/** The record store operations that a memory needs. */
export interface MemoryRecords extends Pick<RecordStore, 'get' | 'put' | 'list' | 'delete'> {
  /** Number of records in a collection; without it, the records are listed and counted. */
  count?(collection: string): Promise<number>;
}

/**
 * An agent's memory, one document per key in `collection` (e.g. `memory/team-a.analyst`). At most 1,000 keys, beyond that `set`
 * throws TEMPER_QUOTA_EXCEEDED; values of at most 65,536 characters of JSON, beyond that TEMPER_TOOL_INPUT_INVALID.
 */
export function createRecordMemory(records: MemoryRecords, collection: string): Memory {
  const all = async (): Promise<MemoryHit[]> => {
    const found = await records.list(collection);
    return found.flatMap(({ value }) => entryFrom(value) ?? []);
  };
  const count = async (): Promise<number> =>
    (await records.count?.(collection)) ?? (await records.list(collection)).length;
  return {
    async get(key) {
      const found = await records.get(collection, nameOf(key));
      return found === undefined ? undefined : entryFrom(found)?.value;
    },
    async set(key, value) {
      const name = nameOf(key);
      const size = JSON.stringify(value).length;
      if (size > MAX_VALUE_CHARACTERS) {
        throw new TemperError(
          'TEMPER_TOOL_INPUT_INVALID',
          `the value has ${size} characters; memory keeps at most ${MAX_VALUE_CHARACTERS}, so write a file instead`,
        );
      }
      if ((await records.get(collection, name)) === undefined && (await count()) >= MAX_ENTRIES) {
        throw new TemperError(
          'TEMPER_QUOTA_EXCEEDED',
          `memory holds ${MAX_ENTRIES} keys, which is all it keeps; delete one of them, or set one again`,
        );
      }
      await records.put(collection, name, { key, value });
    },
    async delete(key) {
      const name = nameOf(key);
      const found = await records.get(collection, name);
      if (found !== undefined) await records.delete(collection, name);
      return found !== undefined;
    },
    async list(prefix, limit, isReadable) {
      const keys = (await all())
        .map(({ key }) => key)
        .filter((key) => key.startsWith(prefix) && isReadable(key))
        .sort();
      return { keys: keys.slice(0, Math.max(0, limit)), complete: keys.length <= limit };
    },
    async search(query, limit, isReadable) {
      const ranked = rankEntries(await all(), query);
      return ranked.filter(({ key }) => isReadable(key)).slice(0, Math.max(0, limit));
    },
  };
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
  return { key: record.key, value: record.value };
}
