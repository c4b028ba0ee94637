import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import {
  callerOfSession,
  PEER_OUTCOMES,
  type PeerOutcome,
  type PeerTask,
  type PeerTaskEnd,
} from '../../bus/peer-task.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { isCount, isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { changeDocument, createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { keepLast, lastMessages } from '../jetstream/stream-reader.ts';
import type { TaskRecords } from './task-records.ts';

/** A task of a peer with its place in the streams of its session. */
export interface StoredPeerTask extends PeerTask {
  /** The last sequences of the events and of the replies of the session before this message. */
  readonly afterEvent: number;
  readonly afterReply: number;
  /** Of the message in the inbox, as soon as it is stored. */
  readonly sequence?: number;
}

/**
 * The tasks of peers, by agent and caller: `<agent>.peer.<caller>.<message>`. Of each caller the newest are kept, so that no caller can
 * remove those of another. Methods throw TEMPER_BUS_*.
 */
export interface PeerTasks {
  /** Creates the record; the one of a repeated call stays. Throws TEMPER_STORAGE_LIMIT_EXCEEDED. */
  open(agentUid: string, task: StoredPeerTask): Promise<StoredPeerTask>;
  get(agentUid: string, caller: string, message: string): Promise<StoredPeerTask | undefined>;
  stored(agentUid: string, task: StoredPeerTask, sequence: number): Promise<StoredPeerTask>;
  /** The first end holds. */
  ended(agentUid: string, of: { session: string; message: string }, end: PeerTaskEnd): Promise<void>;
  /** All that are kept of the caller, in no particular order. */
  of(agentUid: string, caller: string): Promise<StoredPeerTask[]>;
}

const STREAM = bucketStream(BUCKETS.tasks);
const MAX_TASKS_PER_CALLER = 100;
/** Records by which a caller may exceed the limit before its oldest ones are removed. */
const TRIM_STEP = 20;
const MAX_COUNTED_CALLERS = 20_000;

export function createPeerTasks(connection: JetStreamConnection, records: Pick<TaskRecords, 'reserve'>): PeerTasks {
  const documents = createDocumentStore(connection, BUCKETS.tasks);
  const added = new LRUCache<string, number>(entries(MAX_COUNTED_CALLERS));
  const get = async (agentUid: string, caller: string, message: string): Promise<StoredPeerTask | undefined> =>
    parsePeerTask((await documents.get(keyOf(agentUid, caller, message)))?.value);
  const trim = async (agentUid: string, caller: string): Promise<void> => {
    const id = `${agentUid}/${caller}`;
    const count = (added.get(id) ?? 0) + 1;
    added.set(id, count % TRIM_STEP);
    const subject = bucketSubject(BUCKETS.tasks, keyOf(agentUid, caller, '*'));
    if (count >= TRIM_STEP) await keepLast(connection, STREAM, subject, MAX_TASKS_PER_CALLER);
  };
  const change = async (
    agentUid: string,
    { caller, message }: StoredPeerTask,
    next: (task: StoredPeerTask) => StoredPeerTask,
  ) => changeDocument(documents, keyOf(agentUid, caller, message), { parse: parsePeerTask, change: next });
  return {
    get,
    async open(agentUid, task) {
      const { caller, message } = task;
      const found = await get(agentUid, caller, message);
      if (found !== undefined) return found;
      const value = task as unknown as Json;
      await records.reserve(agentUid, Buffer.byteLength(JSON.stringify(value)));
      await documents.write(keyOf(agentUid, caller, message), value, 0);
      await trim(agentUid, caller);
      return (await get(agentUid, caller, message)) ?? task;
    },
    async stored(agentUid, task, sequence) {
      const changed = await change(agentUid, task, (known) =>
        known.sequence === undefined ? { ...known, sequence } : known,
      );
      return changed?.value ?? { ...task, sequence };
    },
    async ended(agentUid, { session, message }, end) {
      const caller = callerOfSession(session);
      const task = caller === undefined ? undefined : await get(agentUid, caller, message);
      if (task === undefined) return;
      await change(agentUid, task, (known) => (known.ended === undefined ? { ...known, ended: end } : known));
    },
    async of(agentUid, caller) {
      const subject = bucketSubject(BUCKETS.tasks, keyOf(agentUid, caller, '*'));
      const stored = (await lastMessages(connection, STREAM, [subject])) ?? [];
      return stored.flatMap(({ data }) => parsePeerTask(parseJsonBytes(data)) ?? []);
    },
  };
}

function keyOf(agentUid: string, caller: string, message: string): string {
  return `${token(agentUid)}.peer.${token(caller)}.${message === '*' ? message : token(message)}`;
}

const TEXTS = ['message', 'caller', 'context', 'time', 'text', 'digest'];

/** Only gateways write these records, so their form is checked as far as it decides. */
function parsePeerTask(value: Json | undefined): StoredPeerTask | undefined {
  if (!isJsonObject(value) || !TEXTS.every((name) => typeof value[name] === 'string')) return undefined;
  if (!isCount(value.afterEvent) || !isCount(value.afterReply)) return undefined;
  if (value.sequence !== undefined && !isCount(value.sequence)) return undefined;
  if (value.ended !== undefined && !isEnd(value.ended)) return undefined;
  return value as unknown as StoredPeerTask;
}

function isEnd(value: Json): boolean {
  if (!isJsonObject(value) || typeof value.at !== 'string') return false;
  const { outcome, code } = value;
  return (
    PEER_OUTCOMES.includes(outcome as PeerOutcome) &&
    (code === undefined || (typeof code === 'string' && isErrorCode(code)))
  );
}
