import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import { isSharedKey } from '../../policy/shared-keys.ts';
import { byKey, rankTexts, textOf } from './memory-ranking.ts';

/** The records of a memory as bytes of JSON: those of the agent, and those that the agents of its namespace share. */
export interface MemoryBytes {
  own: readonly Uint8Array[];
  shared: readonly Uint8Array[];
}

/** An entry of a memory, and where its record is. */
export interface MemoryFinding {
  key: string;
  tainted: boolean;
  scope: keyof MemoryBytes;
  /** The position in its scope. */
  index: number;
}

/**
 * Finds entries in what `read` returns: with a query those that match, best match first; else all, by key. Where this work is done, and
 * when, is the caller's decision. Throws what `read` throws.
 */
export type MemoryScan = (
  query: string | undefined,
  read: () => Promise<MemoryBytes>,
) => Promise<readonly MemoryFinding[]>;

/** Scans in the thread of the caller. */
export const scanHere: MemoryScan = async (query, read) => scanRecords(query, await read());

/** The entries of a memory. Records that are no entries, and those of keys of the other scope, are left out. */
export function scanRecords(query: string | undefined, memory: MemoryBytes): MemoryFinding[] {
  const entries = (['own', 'shared'] as const).flatMap((scope) =>
    memory[scope].flatMap((bytes, index) => {
      const entry = entryOf(bytes);
      if (entry === undefined || isSharedKey(entry.key) !== (scope === 'shared')) return [];
      const { key, tainted } = entry;
      const text = query === undefined ? '' : textOf(entry.value);
      return [{ found: { key, tainted, scope, index }, key, text }];
    }),
  );
  const ordered = query === undefined ? byKey(entries) : rankTexts(entries, query);
  return ordered.map(({ found }) => found);
}

/** The value of a found entry; undefined when its record is no entry. */
export function valueOf(memory: MemoryBytes, { scope, index }: MemoryFinding): Json | undefined {
  const bytes = memory[scope][index];
  return bytes === undefined ? undefined : entryOf(bytes)?.value;
}

function entryOf(bytes: Uint8Array): { key: string; value: Json; tainted: boolean } | undefined {
  const record = parseJsonBytes(bytes);
  return record === undefined ? undefined : memoryEntry(record);
}

/** The entry in a stored record; undefined when the record is none. */
export function memoryEntry(record: Json): { key: string; value: Json; tainted: boolean } | undefined {
  if (!isJsonObject(record) || typeof record.key !== 'string' || record.value === undefined) return undefined;
  // A record without the member is of a release that did not know what its session had read.
  return { key: record.key, value: record.value, tainted: record.tainted !== false };
}
