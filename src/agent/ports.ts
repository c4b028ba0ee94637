import type { Json } from '../lib/json.ts';
import type { ModelMessage } from '../models/port.ts';

export interface History {
  /** Number of items stored. */
  seq: number;
  items: ModelMessage[];
}

export interface SessionStore {
  load(session: string): Promise<History>;
  /** Appends after `afterSeq` items, or throws TEMPER_STATE_CORRUPT when another writer was there; returns the new seq. */
  append(session: string, afterSeq: number, items: ModelMessage[]): Promise<number>;
  close(session: string): Promise<void>;
}

export interface MemoryHit {
  key: string;
  value: Json;
}

export interface Memory {
  get(key: string): Promise<Json | undefined>;
  set(key: string, value: Json): Promise<void>;
  search(query: string, limit: number): Promise<MemoryHit[]>;
}
