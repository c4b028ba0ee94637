import type { AppendFlags, SessionHistory, SessionStore } from '../../agent/ports.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, sessionFromToken, sessionToken, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { parseSessionHead, type SessionHead } from './session-head.ts';
import { assembleHistory, type SessionEntry, sessionEntry, type StoredParts } from './session-history.ts';
import { parseJsonBytes, lastMessage, purge, readMessages } from '../jetstream/stream-reader.ts';

export interface StoredSession {
  session: string;
  /** RFC 3339. */
  openedAt: string;
  lastUsedAt: string;
  items: number;
  tainted: boolean;
}

export interface NatsSessionStore extends SessionStore {
  /** Most recently used first. */
  list(): Promise<StoredSession[]>;
  /** Ids of the sessions that were not used for this long. The caller closes them with all their data. */
  idle(milliseconds: number): Promise<string[]>;
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
};
const MAX_PARTS = 64;
const MAX_READS = 5;
const REREAD_MS = 100;

/**
 * The sessions of one agent. An append is first written under its own keys and becomes part of the session when the head,
 * `<agent>.<session>.head`, is updated to refer to it. The head is only written over the revision that was read (compare and swap),
 * so of two concurrent writers one wins. Each append contains the name of the previous one. Closing the session also deletes appends
 * that never became part of it. Repeating an append after a lost response has no further effect. At most 11 MiB per append:
 * TEMPER_BUS_TOO_LARGE.
 */
export function createSessionStore(connection: JetStreamConnection, agentUid: string): NatsSessionStore {
  return new BucketSessionStore(connection, token(agentUid));
}

class BucketSessionStore implements NatsSessionStore {
  readonly #connection: JetStreamConnection;
  readonly #owner: string;

  constructor(connection: JetStreamConnection, owner: string) {
    this.#connection = connection;
    this.#owner = owner;
  }

  async load(session: string): Promise<SessionHistory> {
    for (let read = 1; ; read += 1) {
      const found = await this.#readHead(session);
      if (found === undefined) return { seq: 0, items: [], tainted: false };
      const items = assembleHistory(found.head, await this.#readParts(session));
      if (items !== undefined) return { seq: items.length, items, tainted: found.head.tainted };
      if (read === MAX_READS) throw corrupt(session, 'parts of its history are missing');
      // Another writer closed the session or appended to it during the read, or the read came from a NATS replica that lags behind.
      await this.#connection.clock.sleep(REREAD_MS, this.#connection.closed);
    }
  }

  async append(session: string, afterSeq: number, items: ModelMessage[], marks: AppendFlags = {}): Promise<number> {
    const { head, revision } = (await this.#readHead(session)) ?? { head: NO_SESSION, revision: 0 };
    const tainted = marks.tainted === true;
    const entry = (previous: string): SessionEntry => sessionEntry({ after: afterSeq, items, tainted }, previous);
    if (head.before === afterSeq && entry(head.previous).name === head.entry) return head.items;
    if (head.items !== afterSeq) {
      throw corrupt(session, `it has ${head.items} items, not ${afterSeq}: another writer appended`);
    }
    const next = entry(head.entry);
    await this.#write(session, next);
    const usedAt = this.#connection.clock.now().toISOString();
    const moved: SessionHead = {
      openedAt: head.openedAt || usedAt,
      usedAt,
      items: afterSeq + items.length,
      before: afterSeq,
      entry: next.name,
      previous: head.entry,
      tainted: head.tainted || tainted,
    };
    const stored = await publish(
      this.#connection,
      this.#key(session, 'head'),
      { ...moved },
      { expectedLastSequence: revision },
    );
    if (stored === undefined) throw corrupt(session, 'another writer appended first');
    return moved.items;
  }

  async close(session: string): Promise<void> {
    // The head first: a session without a head does not exist, even if parts of its history remain.
    await purge(this.#connection, STREAM, this.#key(session, 'head'));
    await purge(this.#connection, STREAM, this.#key(session, '>'));
  }

  async list(): Promise<StoredSession[]> {
    const found: StoredSession[] = [];
    const heads = bucketSubject(BUCKETS.sessions, `${this.#owner}.*.head`);
    for await (const { subject, data } of readMessages(this.#connection, STREAM, heads)) {
      const head = parseSessionHead(parseJsonBytes(data));
      if (head === undefined) continue;
      const { openedAt, usedAt: lastUsedAt, items, tainted } = head;
      found.push({ session: sessionFromToken(subject.split('.').at(-2) ?? ''), openedAt, lastUsedAt, items, tainted });
    }
    return found.sort((a, b) => (a.lastUsedAt < b.lastUsedAt ? 1 : -1));
  }

  async idle(milliseconds: number): Promise<string[]> {
    const before = this.#connection.clock.now().getTime() - milliseconds;
    const sessions = await this.list();
    return sessions.filter(({ lastUsedAt }) => Date.parse(lastUsedAt) < before).map(({ session }) => session);
  }

  #key(session: string, rest: string): string {
    return bucketSubject(BUCKETS.sessions, `${this.#owner}.${sessionToken(session)}.${rest}`);
  }

  async #readHead(session: string): Promise<{ head: SessionHead; revision: number } | undefined> {
    const found = await lastMessage(this.#connection, STREAM, this.#key(session, 'head'));
    if (found === undefined) return undefined;
    const head = parseSessionHead(parseJsonBytes(found.data));
    if (head === undefined) throw corrupt(session, 'its head cannot be read');
    return { head, revision: found.seq };
  }

  async #readParts(session: string): Promise<StoredParts> {
    const stored: StoredParts = new Map();
    const all = this.#key(session, 'history.*.*');
    for await (const { subject, data } of readMessages(this.#connection, STREAM, all)) {
      const [name = '', part = ''] = subject.split('.').slice(-2);
      const parts = stored.get(name) ?? new Map<number, Uint8Array>();
      stored.set(name, parts.set(Number(part), data));
    }
    return stored;
  }

  async #write(session: string, { name, parts }: SessionEntry): Promise<void> {
    if (parts.length > MAX_PARTS) {
      throw new TemperError(
        'TEMPER_BUS_TOO_LARGE',
        `session "${session}": the items of one append take ${parts.length} parts, more than the maximum of ${MAX_PARTS}; append less at once`,
      );
    }
    for (const [part, bytes] of parts.entries()) {
      await publish(this.#connection, this.#key(session, `history.${name}.${part}`), bytes);
    }
  }
}

function corrupt(session: string, what: string): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `session "${session}": ${what}; close it and start a new one`);
}
