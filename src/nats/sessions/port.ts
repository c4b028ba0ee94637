import type { AppendFlags, SessionHistory, SessionStore } from '../../agent/ports.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { SessionMarks } from './session-head.ts';

export interface StoredSession {
  session: string;
  /** RFC 3339. */
  openedAt: string;
  lastUsedAt: string;
  items: number;
  tainted: boolean;
}

export interface NatsSessionStore extends SessionStore {
  /** As in the port. Nothing becomes part of the session before `admitted` resolves, and nothing stays when it rejects. */
  append(
    session: string,
    afterSeq: number,
    items: ModelMessage[],
    marks?: AppendFlags,
    admitted?: Promise<void>,
  ): Promise<number>;
  /** As `load`, for a reader that may be refused or leave before the history is read. */
  loadFor(session: string, reader: HistoryReader): Promise<SessionHistory>;
  /** As `load`; undefined for a history of this many bytes or more. */
  loadBelow(session: string, bytes: number): Promise<SessionHistory | undefined>;
  /** Reads the head alone. False for an unknown session. */
  isTainted(session: string): Promise<boolean>;
  marks(session: string): Promise<SessionMarks>;
  /** The session has untrusted content from now on. Creates an empty session unless it exists. Idempotent. Throws TEMPER_SESSION_CLOSED. */
  taint(session: string): Promise<void>;
  markPrivate(session: string): Promise<void>;
  /** Creates an empty session unless it exists. Throws TEMPER_STORAGE_LIMIT_EXCEEDED when the agent has no bytes left. */
  open(session: string): Promise<void>;
  exists(session: string): Promise<boolean>;
  /**
   * Deletes the history and keeps the session closed: `load`, `open` and `append` throw TEMPER_SESSION_CLOSED from then on, `close` changes
   * nothing. Idempotent; false when the session was closed before.
   */
  closePermanently(session: string): Promise<boolean>;
  isClosed(session: string): Promise<boolean>;
  /** Most recently used first. */
  list(): Promise<StoredSession[]>;
  /** Ids of the sessions that were not used for this long. */
  idle(milliseconds: number): Promise<string[]>;
  /** Sessions that were not used since, closed ones included with the time of their closing. Times in milliseconds since 1970. */
  unused(since: { open: number; closed: number }): Promise<UnusedSession[]>;
  /**
   * Deletes a session that was not used since, as if it had never existed. `removeRest` deletes what else belongs to it; it may run
   * again after a crash. False, without effect, when the session was used meanwhile: a session is marked as used before it is read.
   */
  discard(session: string, since: number, removeRest: () => Promise<void>): Promise<boolean>;
}

export interface UnusedSession {
  session: string;
  /** RFC 3339. */
  lastUsedAt: string;
  isClosed: boolean;
}

export interface HistoryReader {
  /** Gets the stored bytes of the history; what it throws is thrown. */
  admit: (bytes: number) => void;
  /** Aborts when the reader leaves. */
  signal: AbortSignal;
}
