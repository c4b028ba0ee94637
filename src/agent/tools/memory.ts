import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { Memory, MemoryHit } from '../ports.ts';

const MAX_KEY_CHARACTERS = 256;
const MAX_VALUE_CHARACTERS = 65_536;
const MAX_ENTRIES = 1_000;

/** The record store operations that a memory needs. */
export interface MemoryRecords extends Pick<RecordStore, 'get' | 'put' | 'list'> {
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
          `memory holds ${MAX_ENTRIES} keys, which is all it keeps; set one of them again`,
        );
      }
      await records.put(collection, name, { key, value });
    },
    async search(query, limit) {
      return rank(await all(), query).slice(0, Math.max(0, limit));
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

/** Okapi BM25 over the words of key and value, with triple weight for the key; entries without any query word are omitted. */
function rank(entries: MemoryHit[], query: string): MemoryHit[] {
  const queryWords = new Set(wordsOf(query));
  const documents = entries.map((entry) => {
    const key = wordsOf(entry.key);
    return { entry, words: [...key, ...key, ...key, ...wordsOf(textOf(entry.value))] };
  });
  const average = documents.reduce((sum, { words }) => sum + words.length, 0) / Math.max(1, documents.length);
  const scores = documents.map(() => 0);
  for (const word of queryWords) {
    const counts = documents.map(({ words }) => words.reduce((count, other) => count + Number(other === word), 0));
    const documentFrequency = counts.filter((count) => count > 0).length;
    const inverseFrequency = Math.log(1 + (documents.length - documentFrequency + 0.5) / (documentFrequency + 0.5));
    for (const [index, count] of counts.entries()) {
      const length = (documents[index]?.words.length ?? 0) / average;
      scores[index] =
        (scores[index] ?? 0) + (inverseFrequency * count * 2.2) / (count + 1.2 * (0.25 + 0.75 * length) || 1);
    }
  }
  return documents
    .map(({ entry }, index) => ({ entry, score: scores[index] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || (a.entry.key < b.entry.key ? -1 : 1))
    .map(({ entry }) => entry);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The value as text for the word index. */
function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
