import { isDeepStrictEqual } from 'node:util';
import type { AppendFlags, SessionHistory } from '../../agent/ports.ts';
import { MIN_SESSION_IDLE_MS } from '../../agent/session/session-age.ts';
import { sessionClosed } from '../../agent/session/session-id.ts';
import { type HistoryEntry, historyEntry } from '../../agent/session/history-entry.ts';
import { TemperError } from '../../lib/errors.ts';
import { type IdGenerator, ulids } from '../../lib/ids.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, sessionFromToken, sessionToken, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { DEFAULT_STORAGE_LIMITS, storageLimitExceeded } from '../residents/storage-limits.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';
import {
  addsMark,
  hasMark,
  marksAfter,
  marksIn,
  parseSessionHead,
  type SessionHead,
  type SessionMarks,
} from './session-head.ts';
import type { HistoryReader, NatsSessionStore, StoredSession, UnusedSession } from './port.ts';
import { SessionHeads, type StoredHead } from './session-heads.ts';
import {
  assembleHistory,
  isRepeated,
  type SessionEntry,
  sessionEntry,
  storedForm,
  type StoredParts,
} from './session-history.ts';
import { parseJsonBytes } from '../../lib/json.ts';
import { lastMessage, purge, readMessages } from '../jetstream/stream-reader.ts';

type LargeRead = <T>(work: () => Promise<T>) => Promise<T>;

export interface SessionStoreOptions {
  /** Bytes of the agent and its namespace. Absent: only the limit of a session applies. */
  quota?: AgentQuota;
  /** Runs the reading of a large history; bounds how many this process has in memory at once. */
  largeRead?: LargeRead | undefined;
  /** Shared by the stores of a process, so that an append does not read the head that the append before it wrote. */
  heads?: SessionHeads;
  ids?: IdGenerator;
}

const STREAM = bucketStream(BUCKETS.sessions);
const NO_SESSION: SessionHead = {
  openedAt: '',
  usedAt: '',
  items: 0,
  before: -1,
  entry: '',
  previous: '',
  tainted: false,
  bytes: 0,
};
const LARGE_BYTES = 1_024 * 1_024;
/** Bytes of a head, about. */
const HEAD_BYTES = 256;
/** How exact the time of the last use is. A session that may be closed as idle is marked as used by every read: see `discard`. */
const USED_AGAIN_MS = MIN_SESSION_IDLE_MS / 2;
const MAX_PARTS = 64;
const MAX_READS = 5;
/** Each conflict means that the head changed, by a mark or by an equal append. */
const MAX_APPEND_ATTEMPTS = 5;
const REREAD_MS = 100;
/** Each conflict means that another writer succeeded, and an agent works on one message at a time. */
const MAX_CLOSE_ATTEMPTS = 20;
/** A history and appends that never became part of it are read up to this multiple of the limit of a session. */
const MAX_READ_FACTOR = 4;

/**
 * The sessions of one agent. An append is first written under its own keys and becomes part of the session when the head,
 * `<agent>.<session>.head`, is updated to refer to it. The head is only written over the revision that was read (compare and swap),
 * so of two concurrent writers one wins, and the other removes the keys that it wrote. Each append contains the name of the previous
 * one. The head holds the bytes of all appends. Closing the session also deletes appends that never became part of it. Repeating an
 * append after a lost response has no further effect. At most 11 MiB per append: TEMPER_BUS_TOO_LARGE.
 */
export function createSessionStore(
  connection: JetStreamConnection,
  agentUid: string,
  options: SessionStoreOptions = {},
): NatsSessionStore {
  return new BucketSessionStore(connection, token(agentUid), options);
}

class BucketSessionStore implements NatsSessionStore {
  readonly #connection: JetStreamConnection;
  readonly #owner: string;
  readonly #quota: AgentQuota | undefined;
  readonly #ids: IdGenerator;
  readonly #largeRead: LargeRead;
  readonly #maxBytes: number;
  readonly #heads: SessionHeads;

  constructor(
    connection: JetStreamConnection,
    owner: string,
    { quota, ids = ulids, largeRead = runNow, heads = new SessionHeads(connection) }: SessionStoreOptions,
  ) {
    this.#connection = connection;
    this.#owner = owner;
    this.#quota = quota;
    this.#ids = ids;
    this.#largeRead = largeRead;
    this.#heads = heads;
    this.#maxBytes = (quota?.limits ?? DEFAULT_STORAGE_LIMITS).sessionBytes;
  }

  async load(session: string): Promise<SessionHistory> {
    const found = await this.#usedHead(session);
    return found === undefined ? emptyHistory() : this.#loadInTurn(session, found);
  }

  async loadFor(session: string, { admit, signal }: HistoryReader): Promise<SessionHistory> {
    const found = await this.#usedHead(session);
    if (found === undefined) return emptyHistory();
    admit(found.head.bytes ?? this.#maxBytes);
    return this.#loadInTurn(session, found, signal);
  }

  #loadInTurn(session: string, found: StoredHead, signal?: AbortSignal): Promise<SessionHistory> {
    const load = async () => {
      signal?.throwIfAborted();
      return this.#load(session, found);
    };
    return (found.head.bytes ?? LARGE_BYTES) < LARGE_BYTES ? load() : this.#largeRead(load);
  }

  async loadBelow(session: string, bytes: number): Promise<SessionHistory | undefined> {
    const early = this.#partsAtOnce(session, bytes);
    const found = await this.#usedHead(session);
    if (found === undefined) return emptyHistory();
    const { head } = found;
    if ((head.bytes ?? bytes) >= bytes) return undefined;
    const items = early === undefined ? undefined : assembleHistory(head, await early);
    return items === undefined ? this.#load(session, found) : historyOf(head, items);
  }

  /** The parts of a history that is small by the remembered head, read while the stored head is: most often they are those of both. */
  #partsAtOnce(session: string, bytes: number): Promise<StoredParts> | undefined {
    const known = this.#heads.get(this.#key(session, 'head'))?.head;
    if (known === undefined || known.entry === '' || (known.bytes ?? bytes) >= bytes) return undefined;
    const parts = this.#readParts(session);
    // The caller does not await them without a head.
    parts.catch(() => undefined);
    return parts;
  }

  async #load(session: string, first: StoredHead): Promise<SessionHistory> {
    let found: StoredHead | undefined = first;
    for (let read = 1; found !== undefined; read += 1) {
      const { head } = found;
      const parts: StoredParts = head.entry === '' ? new Map() : await this.#readParts(session);
      const items = assembleHistory(head, parts);
      if (items !== undefined) return historyOf(head, items);
      if (read === MAX_READS) throw corrupt(session, 'parts of its history are missing');
      // Another writer closed the session or appended to it during the read, or the read came from a NATS replica that lags behind.
      await this.#connection.clock.sleep(REREAD_MS, this.#connection.closed);
      found = await this.#readHead(session);
    }
    return emptyHistory();
  }

  async isTainted(session: string): Promise<boolean> {
    return (await this.marks(session)).tainted;
  }

  async marks(session: string): Promise<SessionMarks> {
    const head = (await this.#readHead(session))?.head;
    return { tainted: head?.tainted === true, hasPrivateData: head?.private === true };
  }

  async exists(session: string): Promise<boolean> {
    const found = await this.#readHead(session);
    return found !== undefined && found.head.closedAt === undefined;
  }

  async isClosed(session: string): Promise<boolean> {
    return (await this.#readHead(session))?.head.closedAt !== undefined;
  }

  async open(session: string): Promise<void> {
    if (this.#heads.get(this.#key(session, 'head')) !== undefined || (await this.#openHead(session)) !== undefined)
      return;
    const time = this.#connection.clock.now().toISOString();
    // A head without a history has bytes too: an agent must not have any number of empty sessions.
    await this.#quota?.reserve('sessions', HEAD_BYTES);
    // False: another process opened the session.
    await this.#writeHead(session, { ...NO_SESSION, openedAt: time, usedAt: time }, 0);
  }

  taint(session: string): Promise<void> {
    return this.#mark(session, { tainted: true });
  }

  markPrivate(session: string): Promise<void> {
    return this.#mark(session, { private: true });
  }

  async #mark(session: string, mark: Parameters<typeof hasMark>[1]): Promise<void> {
    for (let attempt = 1; attempt <= MAX_CLOSE_ATTEMPTS; attempt += 1) {
      const found = await this.#openHead(session);
      if (found !== undefined && hasMark(found.head, mark)) return;
      const time = this.#connection.clock.now().toISOString();
      if (found === undefined) await this.#quota?.reserve('sessions', HEAD_BYTES);
      const head = found?.head ?? { ...NO_SESSION, openedAt: time, usedAt: time };
      const bytes = head.bytes ?? (await this.#countHistory(session));
      if (await this.#writeHead(session, { ...head, ...mark, bytes }, found?.revision ?? 0)) return;
    }
    throw corrupt(session, 'other writers change it without a pause');
  }

  async append(
    session: string,
    afterSeq: number,
    items: ModelMessage[],
    marks: AppendFlags = {},
    admitted: Promise<void> = Promise.resolve(),
  ): Promise<number> {
    const entry = historyEntry(afterSeq, items, marks);
    const known = this.#heads.get(this.#key(session, 'head'));
    // A remembered head can only confirm that the append fits: whether it is a repeated one, the stored head decides.
    if (known?.head.items === afterSeq && (await this.#appendTo(session, known, entry, admitted)))
      return afterSeq + items.length;
    for (let attempt = 1; attempt <= MAX_APPEND_ATTEMPTS; attempt += 1) {
      const found = await this.#openHead(session);
      const { head, revision } = found ?? { head: NO_SESSION, revision: 0 };
      if (isRepeated(head, entry)) {
        await admitted;
        return head.items;
      }
      if (head.items !== afterSeq) {
        await admitted;
        if (found !== undefined && (await this.#holds(session, found, entry))) return head.items;
        throw corrupt(session, `it has ${head.items} items, not ${afterSeq}: another writer appended`);
      }
      // False: an equal append, a mark of the session, or another writer was faster; or a replica of NATS that lags behind was read.
      if (await this.#appendTo(session, { head, revision }, entry, admitted)) return afterSeq + items.length;
    }
    throw corrupt(session, 'other writers change it without a pause');
  }

  /**
   * Whether an equal append is further back in the history: model calls that an agent makes at the same time carry the same append, and the
   * session can have gone on when the last of them arrives.
   */
  async #holds(session: string, found: StoredHead, entry: HistoryEntry): Promise<boolean> {
    const { after, items } = entry;
    const { head } = found;
    if (items.length === 0 || head.items < after + items.length || addsMark(head, entry)) return false;
    const history = await this.#loadInTurn(session, found);
    return isDeepStrictEqual(history.items.slice(after, after + items.length), storedForm(items));
  }

  /** False when the head has another revision. */
  async #appendTo(
    session: string,
    { head, revision }: StoredHead,
    entry: HistoryEntry,
    admitted: Promise<void>,
  ): Promise<boolean> {
    const next = sessionEntry(entry, head.entry);
    const before = head.bytes ?? (await this.#countHistory(session));
    const added = this.#assertFits(session, before, next);
    // A name of its own, so that the loser of a conflict can remove what it wrote.
    const name = `${next.name}-${this.#ids.next('w')}`;
    const usedAt = this.#connection.clock.now().toISOString();
    const moved: SessionHead = {
      openedAt: head.openedAt || usedAt,
      usedAt,
      items: entry.after + entry.items.length,
      before: entry.after,
      entry: name,
      previous: head.entry,
      ...marksAfter(head, entry),
      bytes: before + added,
    };
    await this.#quota?.reserve('sessions', added);
    return this.#store(session, { name, parts: next.parts }, { head: moved, revision, bytes: added, admitted });
  }

  async closePermanently(session: string): Promise<boolean> {
    const isNew = await this.#writeClosed(session);
    await purge(this.#connection, STREAM, this.#key(session, 'history.>'));
    await this.#quota?.recount('sessions');
    return isNew;
  }

  async #writeClosed(session: string): Promise<boolean> {
    for (let attempt = 1; attempt <= MAX_CLOSE_ATTEMPTS; attempt += 1) {
      const found = await this.#readHead(session);
      if (found?.head.closedAt !== undefined) return false;
      const closedAt = this.#connection.clock.now().toISOString();
      const openedAt = found?.head.openedAt ?? closedAt;
      const head = { ...NO_SESSION, openedAt, usedAt: closedAt, closedAt };
      if (await this.#writeHead(session, head, found?.revision ?? 0)) return true;
    }
    throw corrupt(session, 'other writers append without a pause');
  }

  async close(session: string): Promise<void> {
    if (await this.isClosed(session)) return;
    // The head first: a session without a head does not exist, even if parts of its history remain.
    this.#heads.delete(this.#key(session, 'head'));
    await purge(this.#connection, STREAM, this.#key(session, 'head'));
    await purge(this.#connection, STREAM, this.#key(session, '>'));
    await this.#quota?.recount('sessions');
  }

  async list(): Promise<StoredSession[]> {
    const found: StoredSession[] = [];
    for await (const { session, head } of this.#storedHeads()) {
      const { openedAt, usedAt: lastUsedAt, items, tainted, closedAt } = head;
      if (closedAt === undefined) found.push({ session, openedAt, lastUsedAt, items, tainted });
    }
    return found.sort((a, b) => (a.lastUsedAt < b.lastUsedAt ? 1 : -1));
  }

  async idle(milliseconds: number): Promise<string[]> {
    const open = this.#connection.clock.now().getTime() - milliseconds;
    return (await this.unused({ open, closed: 0 })).map(({ session }) => session);
  }

  async unused(since: { open: number; closed: number }): Promise<UnusedSession[]> {
    const found: UnusedSession[] = [];
    for await (const { session, head } of this.#storedHeads()) {
      const isClosed = head.closedAt !== undefined;
      if (Date.parse(head.usedAt) < (isClosed ? since.closed : since.open))
        found.push({ session, lastUsedAt: head.usedAt, isClosed });
    }
    return found.sort((a, b) => (a.lastUsedAt < b.lastUsedAt ? -1 : 1));
  }

  async discard(session: string, since: number, removeRest: () => Promise<void>): Promise<boolean> {
    const found = await this.#readHead(session);
    if (found === undefined || Date.parse(found.head.usedAt) >= since) return false;
    const { openedAt, usedAt, closedAt } = found.head;
    const empty: SessionHead = { ...NO_SESSION, openedAt, usedAt, ...(closedAt === undefined ? {} : { closedAt }) };
    if (!(await this.#writeHead(session, empty, found.revision))) return false;
    // What is written from here on belongs to a new session of this id.
    const end = this.#heads.get(this.#key(session, 'head'))?.revision ?? found.revision;
    await purge(this.#connection, STREAM, this.#key(session, 'history.>'), end);
    await removeRest();
    // The head last: until then the next attempt repeats everything.
    this.#heads.delete(this.#key(session, 'head'));
    await purge(this.#connection, STREAM, this.#key(session, 'head'), end + 1);
    await this.#quota?.recount('sessions');
    return true;
  }

  #key(session: string, rest: string): string {
    return bucketSubject(BUCKETS.sessions, `${this.#owner}.${sessionToken(session)}.${rest}`);
  }

  async *#storedHeads(): AsyncGenerator<{ session: string; head: SessionHead }> {
    const heads = bucketSubject(BUCKETS.sessions, `${this.#owner}.*.head`);
    for await (const { subject, data } of readMessages(this.#connection, STREAM, heads)) {
      const head = parseSessionHead(parseJsonBytes(data));
      if (head !== undefined) yield { session: sessionFromToken(subject.split('.').at(-2) ?? ''), head };
    }
  }

  /** The open head of a session that is about to be used, marked as used when that was long ago: see `discard`. */
  async #usedHead(session: string): Promise<StoredHead | undefined> {
    for (let attempt = 1; attempt <= MAX_CLOSE_ATTEMPTS; attempt += 1) {
      const found = await this.#openHead(session);
      const now = this.#connection.clock.now();
      if (found === undefined || now.getTime() - Date.parse(found.head.usedAt) < USED_AGAIN_MS) return found;
      const bytes = found.head.bytes ?? (await this.#countHistory(session));
      await this.#writeHead(session, { ...found.head, usedAt: now.toISOString(), bytes }, found.revision);
    }
    throw corrupt(session, 'other writers change it without a pause');
  }

  /** Throws TEMPER_SESSION_CLOSED. */
  async #openHead(session: string): Promise<StoredHead | undefined> {
    const found = await this.#readHead(session);
    if (found?.head.closedAt !== undefined) throw sessionClosed(session, found.head.closedAt);
    return found;
  }

  async #readHead(session: string): Promise<StoredHead | undefined> {
    const subject = this.#key(session, 'head');
    this.#heads.delete(subject);
    const found = await lastMessage(this.#connection, STREAM, subject);
    if (found === undefined) return undefined;
    const head = parseSessionHead(parseJsonBytes(found.data));
    if (head === undefined) throw corrupt(session, 'its head cannot be read');
    const stored = { head, revision: found.seq };
    this.#heads.set(subject, stored);
    return stored;
  }

  async #readParts(session: string): Promise<StoredParts> {
    const parts: StoredParts = new Map();
    const limit = MAX_READ_FACTOR * this.#maxBytes;
    let bytes = 0;
    for await (const { subject, data } of readMessages(this.#connection, STREAM, this.#key(session, 'history.*.*'))) {
      bytes += data.byteLength;
      if (bytes > limit) {
        throw storageLimitExceeded(`the history of session "${session}"`, bytes, limit, 'it cannot be read; close it');
      }
      const [name = '', part = ''] = subject.split('.').slice(-2);
      const found = parts.get(name) ?? new Map<number, Uint8Array>();
      parts.set(name, found.set(Number(part), data));
    }
    return parts;
  }

  /** For a head without a sum. Reads page by page and keeps nothing. */
  async #countHistory(session: string): Promise<number> {
    let bytes = 0;
    const all = this.#key(session, 'history.*.*');
    for await (const { data } of readMessages(this.#connection, STREAM, all)) bytes += data.byteLength;
    return bytes;
  }

  /** Returns the bytes of the append. */
  #assertFits(session: string, before: number, { parts }: SessionEntry): number {
    if (parts.length > MAX_PARTS) {
      throw new TemperError(
        'TEMPER_BUS_TOO_LARGE',
        `session "${session}": the items of one append take ${parts.length} parts, more than the maximum of ${MAX_PARTS}; append less at once`,
      );
    }
    const added = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (before + added <= this.#maxBytes) return added;
    const fix = 'close the session and start a new one';
    throw storageLimitExceeded(`the history of session "${session}"`, before + added, this.#maxBytes, fix);
  }

  /** False when another writer appended first. What did not become part of the session is removed. */
  async #store(
    session: string,
    { name, parts }: SessionEntry,
    { head, revision, bytes, admitted }: StoredHead & { bytes: number; admitted: Promise<void> },
  ): Promise<boolean> {
    let stored: boolean | undefined;
    // Written only in part, or not admitted: the head does not refer to it.
    let isPart = true;
    try {
      for (const [part, data] of parts.entries()) {
        await publish(this.#connection, this.#key(session, `history.${name}.${part}`), data);
      }
      await admitted;
      isPart = false;
      stored = await this.#writeHead(session, head, revision);
      return stored;
    } finally {
      // After an error of the last write it is unknown whether the head was stored.
      if (isPart || stored === false) {
        this.#quota?.release('sessions', bytes);
        await purge(this.#connection, STREAM, this.#key(session, `history.${name}.*`)).catch(() => undefined);
      }
    }
  }

  async #writeHead(session: string, head: SessionHead, revision: number): Promise<boolean> {
    const { bytes = 0 } = head;
    const subject = this.#key(session, 'head');
    const options = { expectedLastSequence: revision };
    this.#heads.delete(subject);
    const written = await publish(this.#connection, subject, { ...head, bytes }, options);
    if (written === undefined) return false;
    this.#heads.set(subject, { head, revision: written.seq });
    return true;
  }
}

function historyOf(head: SessionHead, items: ModelMessage[]): SessionHistory {
  return { seq: items.length, items, ...marksIn(head) };
}

function emptyHistory(): SessionHistory {
  return { seq: 0, items: [], tainted: false };
}

async function runNow<T>(work: () => Promise<T>): Promise<T> {
  return work();
}

function corrupt(session: string, what: string): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `session "${session}": ${what}; close it and start a new one`);
}
