import type { Json } from '../lib/json.ts';
import type { ModelMessage } from '../models/port.ts';

export interface History {
  /** Number of items stored. */
  seq: number;
  items: ModelMessage[];
  /** Untrusted content has entered the session. Never becomes false again. */
  tainted: boolean;
}

/** What an append says beside its items. */
export interface AppendMarks {
  /** The items let untrusted content in. */
  tainted?: boolean;
}

export interface SessionStore {
  /** An unknown session is an empty one. */
  load(session: string): Promise<History>;
  /**
   * Appends after `afterSeq` items, or throws TEMPER_STATE_CORRUPT when another writer was there; returns the new seq.
   * The items of one append are kept all or not at all.
   */
  append(session: string, afterSeq: number, items: ModelMessage[], marks?: AppendMarks): Promise<number>;
  close(session: string): Promise<void>;
}

export interface MemoryHit {
  key: string;
  value: Json;
}

/** What an agent keeps beyond one session. Keys are any text of 1 to 256 characters. */
export interface Memory {
  get(key: string): Promise<Json | undefined>;
  set(key: string, value: Json): Promise<void>;
  /** Best first. */
  search(query: string, limit: number): Promise<MemoryHit[]>;
}
