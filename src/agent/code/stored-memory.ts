import { isJsonObject, type Json, type JsonObject, member, parseUntrustedJson } from '../../lib/json.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { MemorySnapshot } from '../../sandbox/session-port.ts';

/** `memory` as the session stores it. */
export interface StoredMemory {
  values: JsonObject;
  /** Names of the members that live with the runner only. */
  omitted: readonly string[];
}

const EMPTY_MEMORY: StoredMemory = { values: {}, omitted: [] };

export function toStored({ values, omitted }: MemorySnapshot): StoredMemory {
  return { values, omitted: omitted.map(({ name }) => name) };
}

/** The text that identifies a memory, and stores it. */
export function memoryText({ values, omitted }: StoredMemory): string {
  return JSON.stringify({ values, omitted: [...omitted] });
}

/** The memory at the end of the last run that stored one. A text that cannot be read counts as none. */
export function storedMemory(items: readonly ModelMessage[]): StoredMemory {
  const last = items.findLast((item) => item.role === 'tool' && item.memory !== undefined);
  if (last?.role !== 'tool' || last.memory === undefined) return EMPTY_MEMORY;
  let value: Json | undefined;
  try {
    value = parseUntrustedJson(last.memory);
  } catch {
    return EMPTY_MEMORY;
  }
  const [values, omitted] = [member(value, 'values'), member(value, 'omitted')];
  if (!isJsonObject(values) || !Array.isArray(omitted)) return EMPTY_MEMORY;
  return { values, omitted: omitted.filter((name) => typeof name === 'string') };
}
