import type { FinishReason } from '../../bus/port.ts';
import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { parseMessage } from '../inbox/envelope.ts';
import { changeDocument, createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, STREAMS, subjects, token } from '../jetstream/names.ts';
import { messageAt } from '../jetstream/stream-reader.ts';
import { NotificationListener, notify } from '../notify/notifications.ts';
import type { TaskRecords } from './task-records.ts';

/** A message that asked for an answer, as a record of the agent that asked. */
export interface Ask {
  /** Name of the asked agent. */
  readonly agent: string;
  /** The session and the message that asked, with its place in the chain. */
  readonly session: string;
  readonly message: string;
  readonly root: string;
  readonly depth: number;
  /** RFC 3339. */
  readonly deadline: string;
  readonly ancestors: readonly string[];
  readonly state: 'Pending' | 'Answered' | 'Failed';
  readonly finishReason?: FinishReason;
  readonly code?: ErrorCode;
  readonly reason?: string;
  /** The session that ended it has untrusted content. */
  readonly tainted?: true;
  /** Of the answer in the inbox of the agent that asked. */
  readonly sequence?: number;
  /** The message of the session that took the answer: one that waited for it, or the answer itself. */
  readonly takenBy?: string;
}

/**
 * Which agents asked, and whether their sessions have the answer. An answer is a message in the inbox of the agent that asked; the record
 * decides by compare-and-swap whether a waiting call takes it or the session gets the message. Methods throw TEMPER_BUS_*.
 */
export interface Asks {
  /** Creates the record; the one of a repeated call stays. */
  open(agentUid: string, ticket: string, ask: Ask): Promise<Ask>;
  get(agentUid: string, ticket: string): Promise<Ask | undefined>;
  /** Changes the record by compare-and-swap and returns the stored one. `change` is pure; when it returns its argument, nothing is written. */
  update(agentUid: string, ticket: string, change: (ask: Ask) => Ask): Promise<Ask | undefined>;
  /** The text of the answer, while its message is in the inbox. */
  answerOf(agentUid: string, ask: Ask): Promise<string | undefined>;
  /** The record when `isDone` accepts it, at the latest after this time. */
  wait(agentUid: string, ticket: string, wait: AskUntil): Promise<Ask | undefined>;
}

interface AskUntil {
  isDone: (ask: Ask) => boolean;
  milliseconds: number;
  signal: AbortSignal;
}

/** A waiting call looks again after this time, in case a notification was lost. */
const RECHECK_MS = 10_000;

export function createAsks(connection: JetStreamConnection, records: Pick<TaskRecords, 'reserve'>): Asks {
  const documents = createDocumentStore(connection, BUCKETS.tasks);
  const keyOf = (agentUid: string, ticket: string): string => `${token(agentUid)}.ask.${token(ticket)}`;
  const get = async (agentUid: string, ticket: string): Promise<Ask | undefined> =>
    parseAsk((await documents.get(keyOf(agentUid, ticket)))?.value);
  return {
    get,
    async open(agentUid, ticket, ask) {
      const found = await get(agentUid, ticket);
      if (found !== undefined) return found;
      const value = ask as unknown as Json;
      await records.reserve(agentUid, Buffer.byteLength(JSON.stringify(value)));
      await documents.write(keyOf(agentUid, ticket), value, 0);
      return (await get(agentUid, ticket)) ?? ask;
    },
    async update(agentUid, ticket, change) {
      const changed = await changeDocument(documents, keyOf(agentUid, ticket), { parse: parseAsk, change });
      if (changed?.isWritten === true) notify(connection, subjects.notifyInbox(agentUid));
      return changed?.value;
    },
    async answerOf(agentUid, { sequence }) {
      if (sequence === undefined) return undefined;
      const found = await messageAt(connection, STREAMS.inbox, sequence);
      if (found === undefined || found.subject !== subjects.inbox(agentUid)) return undefined;
      return parseMessage(found.data).envelope?.text;
    },
    async wait(agentUid, ticket, { isDone, milliseconds, signal }) {
      const until = connection.clock.monotonic() + milliseconds;
      const ended = AbortSignal.any([signal, connection.closed]);
      using notifications = new NotificationListener(connection, subjects.notifyInbox(agentUid));
      for (;;) {
        notifications.reset();
        const ask = await get(agentUid, ticket);
        const leftMs = until - connection.clock.monotonic();
        if (ask === undefined || isDone(ask) || leftMs <= 0 || ended.aborted) return ask;
        await notifications.wait(Math.min(leftMs, RECHECK_MS), ended);
      }
    },
  };
}

const TEXTS = ['agent', 'session', 'message', 'root', 'deadline'];
const STATES: ReadonlySet<unknown> = new Set(['Pending', 'Answered', 'Failed']);

/** Only gateways write these records, so their form is checked as far as it decides. */
function parseAsk(value: Json | undefined): Ask | undefined {
  if (!isJsonObject(value) || !TEXTS.every((name) => typeof value[name] === 'string')) return undefined;
  if (!STATES.has(value.state) || !Number.isSafeInteger(value.depth) || !Array.isArray(value.ancestors))
    return undefined;
  if (value.code !== undefined && (typeof value.code !== 'string' || !isErrorCode(value.code))) return undefined;
  return value as unknown as Ask;
}
