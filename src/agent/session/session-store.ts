import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { SessionHistory, SessionStore } from '../ports.ts';
import { parseHistoryEntry, toHistoryLine } from './history-entry.ts';
import { assertSessionId } from './session-id.ts';

/** When a session was first and last used. */
interface SessionInfo {
  session: string;
  /** RFC 3339. */
  openedAt: string;
  usedAt: string;
}

export interface RecordSessionStore extends SessionStore {
  list(): Promise<SessionInfo[]>;
  /** Ids of sessions that are idle for at least this time; the caller closes them together with their tools. */
  idle(milliseconds: number): Promise<string[]>;
}

/** Minimum interval between two writes of `usedAt`. */
const USED_AT_INTERVAL_MS = 60_000;

interface SessionPosition {
  seq: number;
  tail: Promise<void>;
  openedAt: string;
  usedAt: number;
}

/**
 * Stores sessions as records: `sessions/<id>.json` has the time of the last use; the log `sessions/<id>/history` has one line per
 * append: `{after, items, tainted?}`. `after` chains the lines, so a second writer is detected at the latest when the session is
 * loaded again.
 */
export function createRecordSessionStore(records: RecordStore, clock: Clock): RecordSessionStore {
  const positions = new Map<string, SessionPosition>();

  const positionOf = async (session: string, seq: () => Promise<number>): Promise<SessionPosition> => {
    const known = positions.get(session);
    if (known !== undefined) return known;
    const [count, info] = await Promise.all([seq(), records.get('sessions', session)]);
    const found = sessionInfo(session, info);
    const openedAt = found?.openedAt ?? clock.now().toISOString();
    const usedAt = found === undefined ? 0 : Date.parse(found.usedAt);
    const position = positions.get(session) ?? { seq: count, tail: Promise.resolve(), openedAt, usedAt };
    positions.set(session, position);
    return position;
  };
  const store: RecordSessionStore = {
    async load(session) {
      assertSessionId(session);
      const history = await readHistory(records, session);
      const position = await positionOf(session, async () => history.seq);
      position.seq = Math.max(position.seq, history.seq);
      return history;
    },
    async append(session, afterSeq, items, marks = {}) {
      assertSessionId(session);
      const position = await positionOf(session, async () => (await readHistory(records, session)).seq);
      const tainted = marks.tainted === true;
      const appended = position.tail.then(async () => {
        if (position.seq !== afterSeq) {
          throw corrupt(session, `it has ${position.seq} items, not ${afterSeq}: another writer has appended to it`);
        }
        await Promise.all([
          updateUsedAt(records, clock, session, position),
          records.append(historyLog(session), toHistoryLine({ after: afterSeq, items, tainted })),
        ]);
        position.seq += items.length;
        return position.seq;
      });
      position.tail = appended.then(ignore, ignore);
      return appended;
    },
    async close(session) {
      assertSessionId(session);
      await positions.get(session)?.tail;
      positions.delete(session);
      // Delete the document last: after a crash in between, the session is still listed and the next sweep closes it again.
      await records.deleteCollection(`sessions/${session}`);
      await records.delete('sessions', session);
    },
    async list() {
      const found = await records.list('sessions');
      return found.flatMap(({ name, value }) => sessionInfo(name, value) ?? []);
    },
    async idle(milliseconds) {
      const before = clock.now().getTime() - milliseconds;
      return (await store.list()).filter((info) => Date.parse(info.usedAt) < before).map((info) => info.session);
    },
  };
  return store;
}

async function readHistory(records: RecordStore, session: string): Promise<SessionHistory> {
  const lines = await records.read(historyLog(session));
  const items: ModelMessage[] = [];
  let tainted = false;
  for (const [index, line] of lines.entries()) {
    const entry = parseHistoryEntry(line);
    if (entry === undefined) throw corrupt(session, `line ${index + 1} of its history is not a valid entry`);
    if (entry.after !== items.length) throw corrupt(session, `line ${index + 1} was written by another writer`);
    items.push(...entry.items);
    tainted ||= entry.tainted;
  }
  return { seq: items.length, items, tainted };
}

async function updateUsedAt(
  records: RecordStore,
  clock: Clock,
  session: string,
  position: SessionPosition,
): Promise<void> {
  const now = clock.now();
  if (now.getTime() - position.usedAt < USED_AT_INTERVAL_MS) return;
  position.usedAt = now.getTime();
  await records.put('sessions', session, { openedAt: position.openedAt, usedAt: now.toISOString() });
}

function ignore(): void {}

function historyLog(session: string): string {
  return `sessions/${session}/history`;
}

function sessionInfo(session: string, value: Json | undefined): SessionInfo | undefined {
  if (!isJsonObject(value)) return undefined;
  const { openedAt, usedAt }: JsonObject = value;
  if (typeof openedAt !== 'string' || typeof usedAt !== 'string' || Number.isNaN(Date.parse(usedAt))) return undefined;
  return { session, openedAt, usedAt };
}

function corrupt(session: string, what: string): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `session "${session}": ${what}; close it and start a new one`);
}
