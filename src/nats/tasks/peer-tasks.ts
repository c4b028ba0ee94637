import { LRUCache } from 'lru-cache';
import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { isCount, isJsonObject, type Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { changeDocument, createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { keepLast, lastMessages, parseJsonBytes } from '../jetstream/stream-reader.ts';
import type { TaskRecords } from './task-records.ts';

/** How a task of a peer ended. */
const OUTCOMES = ['Completed', 'Rejected', 'Failed', 'Canceled'] as const;
export type PeerOutcome = (typeof OUTCOMES)[number];

interface PeerTaskEnd {
  readonly outcome: PeerOutcome;
  /** Why there is no answer. */
  readonly code?: ErrorCode;
  /** RFC 3339. */
  readonly at: string;
}

/** A message of a peer, an agent or a program that calls over A2A. */
export interface PeerTask {
  /** The id of the message, and of the task. */
  readonly message: string;
  /** The digest that stands for the caller. */
  readonly caller: string;
  /** The context as the caller knows it; with the caller it names the session. */
  readonly context: string;
  /** RFC 3339. */
  readonly time: string;
  /** The beginning of the text. */
  readonly text: string;
  /** Digest of the whole message: another message with the same id is refused. */
  readonly digest: string;
  /** The last sequences of the events and of the replies of the session before this message. */
  readonly afterEvent: number;
  readonly afterReply: number;
  /** Of the message in the inbox, as soon as it is stored. */
  readonly sequence?: number;
  readonly ended?: PeerTaskEnd;
}

/**
 * The tasks of peers, by agent and caller: `<agent>.peer.<caller>.<message>`. Of each caller the newest are kept, so that no caller can
 * remove those of another. Methods throw TEMPER_BUS_*.
 */
export interface PeerTasks {
  /** Creates the record; the one of a repeated call stays. Throws TEMPER_STORAGE_LIMIT_EXCEEDED. */
  open(agentUid: string, task: PeerTask): Promise<PeerTask>;
  get(agentUid: string, caller: string, message: string): Promise<PeerTask | undefined>;
  stored(agentUid: string, task: PeerTask, sequence: number): Promise<PeerTask>;
  /** The first end holds. */
  ended(agentUid: string, of: { session: string; message: string }, end: PeerTaskEnd): Promise<void>;
  /** All that are kept of the caller, in no particular order. */
  of(agentUid: string, caller: string): Promise<PeerTask[]>;
}

/** No name of an agent has a `_`, so no session of a message of an agent is one of a peer. */
const PREFIX = 'a2a_';
const CALLER = /^[0-9a-f]{32}$/;
const STREAM = bucketStream(BUCKETS.tasks);
const MAX_TASKS_PER_CALLER = 100;
/** Records by which a caller may exceed the limit before its oldest ones are removed. */
const TRIM_STEP = 20;
const MAX_COUNTED_CALLERS = 20_000;

/** The session of a context of a caller. Contexts of two callers are two sessions, whatever their ids are. */
export function peerSession(caller: string, context: string): string {
  return `${PREFIX}${caller}.${context}`;
}

function callerOf(session: string): string | undefined {
  const caller = session.startsWith(PREFIX) ? session.slice(PREFIX.length).split('.', 1)[0] : undefined;
  return caller !== undefined && CALLER.test(caller) ? caller : undefined;
}

export function createPeerTasks(connection: JetStreamConnection, records: Pick<TaskRecords, 'reserve'>): PeerTasks {
  const documents = createDocumentStore(connection, BUCKETS.tasks);
  const added = new LRUCache<string, number>({ max: MAX_COUNTED_CALLERS });
  const get = async (agentUid: string, caller: string, message: string): Promise<PeerTask | undefined> =>
    parsePeerTask((await documents.get(keyOf(agentUid, caller, message)))?.value);
  const trim = async (agentUid: string, caller: string): Promise<void> => {
    const id = `${agentUid}/${caller}`;
    const count = (added.get(id) ?? 0) + 1;
    added.set(id, count % TRIM_STEP);
    const subject = bucketSubject(BUCKETS.tasks, keyOf(agentUid, caller, '*'));
    if (count >= TRIM_STEP) await keepLast(connection, STREAM, subject, MAX_TASKS_PER_CALLER);
  };
  const change = async (agentUid: string, { caller, message }: PeerTask, next: (task: PeerTask) => PeerTask) =>
    changeDocument(documents, keyOf(agentUid, caller, message), { parse: parsePeerTask, change: next });
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
      const caller = callerOf(session);
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
function parsePeerTask(value: Json | undefined): PeerTask | undefined {
  if (!isJsonObject(value) || !TEXTS.every((name) => typeof value[name] === 'string')) return undefined;
  if (!isCount(value.afterEvent) || !isCount(value.afterReply)) return undefined;
  if (value.sequence !== undefined && !isCount(value.sequence)) return undefined;
  if (value.ended !== undefined && !isEnd(value.ended)) return undefined;
  return value as unknown as PeerTask;
}

function isEnd(value: Json): boolean {
  if (!isJsonObject(value) || typeof value.at !== 'string') return false;
  const { outcome, code } = value;
  return (
    OUTCOMES.includes(outcome as PeerOutcome) && (code === undefined || (typeof code === 'string' && isErrorCode(code)))
  );
}
