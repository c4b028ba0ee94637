import type { Json } from '../lib/json.ts';
import type { ModelMessage } from '../models/port.ts';

export interface SessionHistory {
  /** Number of items stored. */
  seq: number;
  items: ModelMessage[];
  /** Untrusted content has entered the session. Never becomes false again. */
  tainted: boolean;
  /** Private data has entered the session. Never becomes false again. */
  private?: boolean;
}

/** Flags stored with the items of one append. */
export interface AppendFlags {
  /** The items contain untrusted content. */
  tainted?: boolean;
  /** The session has private data. */
  private?: boolean;
  /** The store may store the items with a later append of the message, at the latest with its end. They are not durable before. */
  deferrable?: boolean;
}

/** The sessions of one agent. Session ids are unique per agent only, so a store never serves two agents. */
export interface SessionStore {
  /**
   * Reads the whole history; an unknown session is empty. Throws TEMPER_SESSION_INVALID for a malformed id and
   * TEMPER_STATE_CORRUPT when the stored history is damaged or has two writers.
   */
  load(session: string): Promise<SessionHistory>;
  /**
   * Appends after `afterSeq` items and returns the new seq; durable when it resolves, unless it is `deferrable`. Atomic: all items are stored or none.
   * Throws TEMPER_SESSION_INVALID for a malformed id and TEMPER_STATE_CORRUPT when another writer has appended meanwhile.
   * Not idempotent: after an error with unknown result, load the session again.
   */
  append(session: string, afterSeq: number, items: ModelMessage[], marks?: AppendFlags): Promise<number>;
  /** Deletes the session. Idempotent. Throws TEMPER_SESSION_INVALID for a malformed id. */
  close(session: string): Promise<void>;
}

export interface MemoryValue {
  value: Json;
  /** A session with untrusted content wrote it, or a release that did not record it. */
  tainted: boolean;
}

export interface MemoryHit extends MemoryValue {
  key: string;
}

export interface MemoryKeys {
  /** Sorted. */
  keys: string[];
  /** False when there are more. */
  complete: boolean;
  /** One of the keys has a tainted value: its name is as untrusted as its value. */
  tainted: boolean;
}

/**
 * The memory of an agent, which outlives its sessions. `shared` and the keys below it belong to all agents of the namespace. Keys are
 * arbitrary text of 1 to 256 characters; other keys throw TEMPER_TOOL_INPUT_INVALID.
 */
export interface Memory {
  /** The stored value; undefined for an unknown key. */
  get(key: string): Promise<MemoryValue | undefined>;
  /**
   * Stores or replaces a value, with the mark of the session that writes it; durable when it resolves, idempotent. Throws TEMPER_TOOL_INPUT_INVALID for a value above 65,536
   * characters of JSON (8,192 of a shared key) and TEMPER_QUOTA_EXCEEDED for a new key above 1,000 keys.
   */
  set(key: string, value: Json, marks?: { tainted: boolean }): Promise<void>;
  /** Deletes the value, durable when it resolves. Returns whether there was one. */
  delete(key: string): Promise<boolean>;
  /** At most `limit` readable keys that start with the prefix. */
  list(prefix: string, limit: number, isReadable: (key: string) => boolean): Promise<MemoryKeys>;
  /**
   * At most `limit` readable entries that match the words of the query, best match first. Sixteen words of the query count, and of
   * a large memory the beginning of the longest values.
   */
  search(query: string, limit: number, isReadable: (key: string) => boolean): Promise<MemoryHit[]>;
}
