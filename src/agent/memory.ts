import { sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import type { Memory, MemoryHit } from './ports.ts';

const MAXIMUM_KEY = 256;
const MAXIMUM_VALUE = 65_536;
const MAXIMUM_ENTRIES = 1_000;

/** What a memory needs of where it is kept. */
export interface MemoryRecords extends Pick<RecordStore, 'get' | 'put' | 'list'> {
  /** How many records a collection holds; without it they are listed to be counted. */
  count?(collection: string): Promise<number>;
}

/**
 * An agent's memory as one document a key, in `collection` (e.g. `memory/team-a.analyst`). At most 1,000 keys with values
 * of at most 65,536 characters of JSON: TEMPER_QUOTA_EXCEEDED and TEMPER_TOOL_INPUT_INVALID beyond that.
 */
export function recordMemory(records: MemoryRecords, collection: string): Memory {
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
      if (size > MAXIMUM_VALUE) {
        throw new TemperError(
          'TEMPER_TOOL_INPUT_INVALID',
          `the value has ${size} characters; memory keeps at most ${MAXIMUM_VALUE}, so write a file instead`,
        );
      }
      if ((await records.get(collection, name)) === undefined && (await count()) >= MAXIMUM_ENTRIES) {
        throw new TemperError(
          'TEMPER_QUOTA_EXCEEDED',
          `memory holds ${MAXIMUM_ENTRIES} keys, which is all it keeps; set one of them again`,
        );
      }
      await records.put(collection, name, { key, value });
    },
    async search(query, limit) {
      return rank(await all(), query).slice(0, Math.max(0, limit));
    },
  };
}

/** Keys are any text; record names are not. */
function nameOf(key: string): string {
  if (key === '' || key.length > MAXIMUM_KEY) {
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `a memory key has 1 to ${MAXIMUM_KEY} characters`);
  }
  return sha256(key).slice('sha256:'.length);
}

function entryFrom(record: Json): MemoryHit | undefined {
  if (!isJsonObject(record) || typeof record.key !== 'string' || record.value === undefined) return undefined;
  return { key: record.key, value: record.value };
}

/** Okapi BM25 over the words of key and value, the key counted three times; entries without any of the words are left out. */
function rank(entries: MemoryHit[], query: string): MemoryHit[] {
  const wanted = new Set(wordsOf(query));
  const documents = entries.map((entry) => {
    const key = wordsOf(entry.key);
    return { entry, words: [...key, ...key, ...key, ...wordsOf(textOf(entry.value))] };
  });
  const average = documents.reduce((sum, { words }) => sum + words.length, 0) / Math.max(1, documents.length);
  const scores = documents.map(() => 0);
  for (const word of wanted) {
    const counts = documents.map(({ words }) => words.reduce((count, other) => count + Number(other === word), 0));
    const holding = counts.filter((count) => count > 0).length;
    const rarity = Math.log(1 + (documents.length - holding + 0.5) / (holding + 0.5));
    for (const [index, count] of counts.entries()) {
      const length = (documents[index]?.words.length ?? 0) / average;
      scores[index] = (scores[index] ?? 0) + (rarity * count * 2.2) / (count + 1.2 * (0.25 + 0.75 * length) || 1);
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

/** Members' names and values as words. */
function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
