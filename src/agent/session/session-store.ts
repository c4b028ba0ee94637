import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { ModelMessage } from '../../models/port.ts';
import { sessionPath, sessionRecordName, SESSIONS, type SessionScope } from '../../tools/session-path.ts';
import type { SessionHistory, SessionStore } from '../ports.ts';
import { historyEntry, parseHistoryEntry, toHistoryLine } from './history-entry.ts';
import { CLOSED_LOCAL_SESSION_MS } from './session-age.ts';
import { assertSessionId, sessionClosed } from './session-id.ts';

/** A session: its owner, and when it was first and last used. */
interface SessionInfo extends SessionScope {
  /** RFC 3339. */
  openedAt: string;
  usedAt: string;
  /** When a user closed the session; it then has no history and takes no messages. */
  closedAt?: string;
}

/** The agent whose sessions a store has. */
type SessionOwner = Pick<SessionScope, 'agent' | 'namespace'>;

/** Changes the form in which messages are stored; `collection` is the path of their session. */
export interface StoredForm {
  toStored(collection: string, items: readonly ModelMessage[]): Promise<ModelMessage[]>;
  restored(collection: string, items: readonly ModelMessage[]): Promise<ModelMessage[]>;
}

const AS_IT_IS: StoredForm = {
  toStored: async (_, items) => [...items],
  restored: async (_, items) => [...items],
};

/** The sessions of one agent; the sessions of other agents in the same records are out of its reach. */
export interface RecordSessionStore extends SessionStore {
  list(): Promise<SessionInfo[]>;
  /** Deletes the history and keeps the session closed: `load` and `append` throw TEMPER_SESSION_CLOSED. Idempotent; false when it was closed. */
  closePermanently(session: string): Promise<boolean>;
  /** A user closed it. */
  isClosed(session: string): Promise<boolean>;
  /** Ids of sessions that are idle for at least this time; the caller closes them together with their tools. A session that a user closed is idle after 30 days at the earliest. */
  idle(milliseconds: number): Promise<string[]>;
}

/** Minimum interval between two writes of `usedAt`. */
const USED_AT_INTERVAL_MS = 60_000;

interface SessionPosition {
  seq: number;
  writes: SerialQueue;
  openedAt: string;
  usedAt: number;
}

/**
 * Stores the sessions of one agent as records. The document `sessions/<namespace>_<agent>_<session>` has the owner and the time of
 * the last use. The log `history` below it has one line per append: `{after, items, tainted?}`. `after` chains the lines, so a second
 * writer is detected at the latest when the session is loaded again.
 */
export function createRecordSessionStore(
  records: RecordStore,
  clock: Clock,
  { agent, namespace }: SessionOwner,
  form: StoredForm = AS_IT_IS,
): RecordSessionStore {
  const scopeOf = (session: string): SessionScope => ({ agent, namespace, session });
  const positions = new Map<string, SessionPosition>();

  const positionOf = async (session: string, seq: () => Promise<number>): Promise<SessionPosition> => {
    const opened = positions.get(session) ?? (await openPosition(records, clock, scopeOf(session), seq));
    const position = positions.get(session) ?? opened;
    positions.set(session, position);
    return position;
  };
  return {
    async load(session) {
      assertSessionId(session);
      const history = await readHistory(records, scopeOf(session));
      const position = await positionOf(session, async () => history.seq);
      position.seq = Math.max(position.seq, history.seq);
      return { ...history, items: await form.restored(sessionPath(scopeOf(session)), history.items) };
    },
    async append(session, afterSeq, items, marks = {}) {
      assertSessionId(session);
      const scope = scopeOf(session);
      const position = await positionOf(session, async () => (await readHistory(records, scope)).seq);
      return position.writes.run(async () => {
        if (position.seq !== afterSeq)
          throw corrupt(session, `it has ${position.seq} items, not ${afterSeq}: another writer has appended to it`);
        const line = historyEntry(afterSeq, await form.toStored(sessionPath(scope), items), marks);
        await Promise.all([
          updateUsedAt(records, clock, scope, position),
          records.append(historyLog(scope), toHistoryLine(line)),
        ]);
        position.seq += items.length;
        return position.seq;
      });
    },
    async close(session) {
      assertSessionId(session);
      await positions.get(session)?.writes.idle();
      positions.delete(session);
      // Delete the document last: after a crash in between, the session is still listed and the next sweep closes it again.
      await records.deleteCollection(sessionPath(scopeOf(session)));
      await records.delete(SESSIONS, sessionRecordName(scopeOf(session)));
    },
    async closePermanently(session) {
      assertSessionId(session);
      await positions.get(session)?.writes.idle();
      positions.delete(session);
      return markClosed(records, clock, scopeOf(session));
    },
    isClosed: (session) => isClosed(records, scopeOf(session)),
    list: () => listSessions(records, { agent, namespace }),
    idle: (milliseconds) => idleSessions(records, { agent, namespace }, clock.now().getTime(), milliseconds),
  };
}

/** Throws TEMPER_SESSION_CLOSED for a session that was closed permanently. */
async function openPosition(
  records: RecordStore,
  clock: Clock,
  scope: SessionScope,
  readSeq: () => Promise<number>,
): Promise<SessionPosition> {
  const [seq, info] = await Promise.all([readSeq(), records.get(SESSIONS, sessionRecordName(scope))]);
  const found = sessionInfo(info);
  if (found?.closedAt !== undefined) throw sessionClosed(scope.session, found.closedAt);
  const openedAt = found?.openedAt ?? clock.now().toISOString();
  return { seq, writes: new SerialQueue(), openedAt, usedAt: found === undefined ? 0 : Date.parse(found.usedAt) };
}

async function isClosed(records: RecordStore, scope: SessionScope): Promise<boolean> {
  return sessionInfo(await records.get(SESSIONS, sessionRecordName(scope)))?.closedAt !== undefined;
}

/** False when the session was closed before. */
async function markClosed(records: RecordStore, clock: Clock, scope: SessionScope): Promise<boolean> {
  const name = sessionRecordName(scope);
  const before = sessionInfo(await records.get(SESSIONS, name));
  const closedAt = before?.closedAt ?? clock.now().toISOString();
  const times = { openedAt: before?.openedAt ?? closedAt, usedAt: closedAt, closedAt };
  // First the document: after a crash in between, the session is closed, and a repeated call deletes the rest.
  const { agent, namespace, session } = scope;
  await records.put(SESSIONS, name, { agent, namespace, session, ...times });
  await records.deleteCollection(sessionPath(scope));
  return before?.closedAt === undefined;
}

async function idleSessions(
  records: RecordStore,
  owner: SessionOwner,
  now: number,
  milliseconds: number,
): Promise<string[]> {
  const closed = Math.max(milliseconds, CLOSED_LOCAL_SESSION_MS);
  const isIdle = ({ usedAt, closedAt }: SessionInfo): boolean =>
    Date.parse(usedAt) < now - (closedAt === undefined ? milliseconds : closed);
  return (await listSessions(records, owner)).filter(isIdle).map(({ session }) => session);
}

async function listSessions(records: RecordStore, { agent, namespace }: SessionOwner): Promise<SessionInfo[]> {
  const found = await records.list(SESSIONS);
  return found
    .flatMap(({ value }) => sessionInfo(value) ?? [])
    .filter((info) => info.agent === agent && info.namespace === namespace);
}

async function readHistory(records: RecordStore, scope: SessionScope): Promise<SessionHistory> {
  const { session } = scope;
  const lines = await records.read(historyLog(scope));
  const items: ModelMessage[] = [];
  let tainted = false;
  let isPrivate = false;
  for (const [index, line] of lines.entries()) {
    const entry = parseHistoryEntry(line);
    if (entry === undefined) throw corrupt(session, `line ${index + 1} of its history is not a valid entry`);
    if (entry.after !== items.length) throw corrupt(session, `line ${index + 1} was written by another writer`);
    items.push(...entry.items);
    tainted ||= entry.tainted;
    isPrivate ||= entry.private === true;
  }
  return { seq: items.length, items, tainted, ...(isPrivate ? { private: true } : {}) };
}

async function updateUsedAt(
  records: RecordStore,
  clock: Clock,
  scope: SessionScope,
  position: SessionPosition,
): Promise<void> {
  const now = clock.now();
  if (now.getTime() - position.usedAt < USED_AT_INTERVAL_MS) return;
  position.usedAt = now.getTime();
  const { agent, namespace, session } = scope;
  const times = { openedAt: position.openedAt, usedAt: now.toISOString() };
  await records.put(SESSIONS, sessionRecordName(scope), { agent, namespace, session, ...times });
}

function historyLog(scope: SessionScope): string {
  return `${sessionPath(scope)}/history`;
}

/** Undefined for a document that is not a session of this format. */
function sessionInfo(value: Json | undefined): SessionInfo | undefined {
  if (!isJsonObject(value)) return undefined;
  const { agent, namespace, session, openedAt, usedAt }: JsonObject = value;
  if (typeof agent !== 'string' || typeof namespace !== 'string' || typeof session !== 'string') return undefined;
  if (typeof openedAt !== 'string' || typeof usedAt !== 'string' || Number.isNaN(Date.parse(usedAt))) return undefined;
  const { closedAt } = value;
  return { agent, namespace, session, openedAt, usedAt, ...(typeof closedAt === 'string' ? { closedAt } : {}) };
}

function corrupt(session: string, what: string): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `session "${session}": ${what}; close it and start a new one`);
}
