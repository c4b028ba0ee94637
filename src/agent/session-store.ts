import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import type { ModelMessage } from '../models/port.ts';
import type { History, SessionStore } from './ports.ts';
import { historyEntry, historyLine } from './session-entry.ts';
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
  /** Ids of the sessions not used for so long; whoever sweeps closes them with all that hangs on them. */
  idle(milliseconds: number): Promise<string[]>;
}

/** How stale `usedAt` may get before it is written anew. */
const USED_AT_STEP = 60_000;

interface Position {
  seq: number;
  tail: Promise<void>;
  openedAt: string;
  usedAt: number;
}

/**
 * Sessions as records: `sessions/<id>.json` says when it was used, the log `sessions/<id>/history` holds one line an
 * append: `{after, items, tainted?}`. `after` chains the lines, so a second writer is seen at the latest when the
 * session is next loaded.
 */
export function recordSessionStore(records: RecordStore, clock: Clock): RecordSessionStore {
  const positions = new Map<string, Position>();

  const positionOf = async (session: string, seq: () => Promise<number>): Promise<Position> => {
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
      const mine = position.tail.then(async () => {
        if (position.seq !== afterSeq) {
          throw corrupt(session, `it holds ${position.seq} items, not ${afterSeq}: a second writer was there`);
        }
        await Promise.all([
          noteUse(records, clock, session, position),
          records.append(historyLog(session), historyLine({ after: afterSeq, items, tainted })),
        ]);
        position.seq += items.length;
        return position.seq;
      });
      position.tail = mine.then(ignore, ignore);
      return mine;
    },
    async close(session) {
      assertSessionId(session);
      await positions.get(session)?.tail;
      positions.delete(session);
      // The document last: a crash in between leaves a session that the next sweep closes again.
      await records.drop(`sessions/${session}`);
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

async function readHistory(records: RecordStore, session: string): Promise<History> {
  const lines = await records.read(historyLog(session));
  const items: ModelMessage[] = [];
  let tainted = false;
  for (const [index, line] of lines.entries()) {
    const entry = historyEntry(line);
    if (entry === undefined) throw corrupt(session, `line ${index + 1} of its history is not an entry`);
    if (entry.after !== items.length) throw corrupt(session, `line ${index + 1} was written by a second writer`);
    items.push(...entry.items);
    tainted ||= entry.tainted;
  }
  return { seq: items.length, items, tainted };
}

async function noteUse(records: RecordStore, clock: Clock, session: string, position: Position): Promise<void> {
  const now = clock.now();
  if (now.getTime() - position.usedAt < USED_AT_STEP) return;
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
