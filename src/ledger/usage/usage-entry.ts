import type { Amounts } from '../port.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';

/** What model calls used. */
export interface UsageAmounts {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Millionths of a dollar. */
  readonly costMicros: number;
}

/** What the calls of one agent to one model used. */
export interface UsageEntry extends UsageAmounts {
  /** Name of the agent. */
  readonly agent: string;
  /** `provider/model`. */
  readonly model: string;
  /** The message at the start of the chain; undefined when the entry is about all messages. */
  readonly root?: string;
  /** The model has no configured price, and so the default price. */
  readonly unpriced?: true;
}

/** An entry with its day and its team: the agent without a parent at the top of a tree of agents. */
export interface DatedUsage extends UsageEntry {
  /** UTC, `2026-05-04`. */
  readonly day: string;
  readonly team: string;
}

/** What one call of a model was charged. */
export function usageOfCall(
  agent: string,
  { id, unpriced }: { readonly id: string; readonly unpriced?: boolean | undefined },
  { inputTokens = 0, outputTokens = 0, costMicros = 0 }: Amounts,
): UsageEntry {
  const counts = { calls: 1, inputTokens, outputTokens, costMicros };
  return { agent, model: id, ...counts, ...(unpriced === true ? { unpriced } : {}) };
}

const COUNTS = ['calls', 'inputTokens', 'outputTokens', 'costMicros'] as const;

export function addAmounts<T extends UsageAmounts>(entry: T, more: UsageAmounts): T {
  const sums = Object.fromEntries(COUNTS.map((key) => [key, entry[key] + more[key]]));
  return { ...entry, ...sums };
}

/** Entries of a limited number of agents, models and root messages. */
export class UsageTable {
  readonly #entries = new Map<string, UsageEntry>();
  readonly #maxEntries: number;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  /** Adds to the entry with the same agent, model and root message. False when it would need one entry too many. */
  add(entry: UsageEntry): boolean {
    const { agent, model, root, unpriced } = entry;
    const key = JSON.stringify([agent, model, root, unpriced]);
    const known = this.#entries.get(key);
    if (known === undefined && this.#entries.size >= this.#maxEntries) return false;
    this.#entries.set(key, known === undefined ? entry : addAmounts(known, entry));
    return true;
  }

  list(): UsageEntry[] {
    return [...this.#entries.values()];
  }
}

/** The stored form of entries. */
export function usageJson(entries: readonly UsageEntry[]): JsonObject[] {
  return entries.map((entry) => ({ ...entry }) as unknown as JsonObject);
}

/** Reads stored entries, and leaves out what is none. */
export function parseUsage(value: Json | undefined): UsageEntry[] {
  return Array.isArray(value) ? value.flatMap((item) => parseEntry(item) ?? []) : [];
}

function parseEntry(value: Json): UsageEntry | undefined {
  if (!isJsonObject(value)) return undefined;
  const { agent, model, root, unpriced } = value;
  if (typeof agent !== 'string' || typeof model !== 'string') return undefined;
  const counts = COUNTS.map((key) => [key, value[key]] as const);
  if (!counts.every(([, count]) => Number.isSafeInteger(count) && Number(count) >= 0)) return undefined;
  return {
    ...(Object.fromEntries(counts) as unknown as UsageAmounts),
    agent,
    model,
    ...(typeof root === 'string' ? { root } : {}),
    ...(unpriced === true ? { unpriced } : {}),
  };
}
