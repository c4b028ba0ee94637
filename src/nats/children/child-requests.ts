import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore, type DocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, subjects, token } from '../jetstream/names.ts';
import { lastMessage, readMessages } from '../jetstream/stream-reader.ts';
import { NotificationListener, notify } from '../notify/notifications.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';

/** What an agent asks for: a child, or the end of one. A gateway has decided that it may. */
export type ChildOrder =
  | { readonly kind: 'Spawn'; readonly template: string }
  | { readonly kind: 'Spawn'; readonly spec: AgentSpec; readonly endsAt?: string }
  | { readonly kind: 'Kill'; readonly uid: string };

/** The child of a request that lives for one task. */
interface SpecialistOf {
  /** The message of the agent that asks for it, of which specialists are counted. */
  readonly message: string;
  /** The ticket of its task, before the task is sent. */
  readonly ticket?: string;
}

/** A request of an agent about a child, from the gateway that accepted it to the operator that carries it out. */
export interface ChildRequestRecord {
  /** Identifies the request among those of the agent; derives from the key of its call. */
  readonly id: string;
  readonly parent: { readonly uid: string; readonly name: string; readonly namespace: string };
  /** Name of the child. */
  readonly name: string;
  readonly state: 'Requested' | 'Done' | 'Refused';
  /** Absent when the request has ended: it is of a size that its agent chose. */
  readonly order?: ChildOrder;
  /** Why it was refused. */
  readonly reason?: string;
  readonly specialist?: SpecialistOf;
  /** RFC 3339. */
  readonly time: string;
}

/** Of one agent: requests that wait for the operator, and all that NATS still keeps. */
const MAX_OPEN = 5;
const MAX_RECORDS = 200;
const RECHECK_MS = 5_000;

/** Requests about children. Methods throw TEMPER_BUS_*. */
export interface ChildRequestStore {
  /**
   * Stores the request; the one of a repeated call stays. Throws TEMPER_QUOTA_EXCEEDED beyond the limits of an agent, and
   * TEMPER_STORAGE_LIMIT_EXCEEDED beyond those of bytes. A request to end a child needs no bytes to be free.
   */
  add(request: ChildRequestRecord): Promise<void>;
  /** The same for the end of a specialist, to which the limits do not apply. */
  addEnd(request: ChildRequestRecord): Promise<void>;
  /** The specialists that an agent asked for during one message. */
  specialists(agentUid: string, message: string): Promise<ChildRequestRecord[]>;
  /** Records the ticket of the task of a specialist, once; returns the recorded one. */
  ticket(agentUid: string, id: string, ticket: string): Promise<string>;
  /** The request when it has ended, or its state after the time. */
  wait(
    agentUid: string,
    id: string,
    milliseconds: number,
    signal: AbortSignal,
  ): Promise<ChildRequestRecord | undefined>;
  /** Records the end of a request, once. */
  end(request: ChildRequestRecord, end: { state: 'Done' } | { state: 'Refused'; reason: string }): Promise<void>;
  /** Requests that wait, stored after this sequence, and the sequence to continue with. */
  open(after: number): Promise<{ requests: ChildRequestRecord[]; sequence: number }>;
  /** Changes with every write; 0 while nothing was written. */
  revision(): Promise<number>;
}

/** `quotaOf` limits the bytes of what agents ask for; the operator, which only ends requests, has none. */
export function createChildRequests(
  connection: JetStreamConnection,
  quotaOf?: (agentUid: string) => AgentQuota,
): ChildRequestStore {
  const documents = createDocumentStore(connection, BUCKETS.childRequests);
  const stream = bucketStream(BUCKETS.childRequests);
  const get = async (uid: string, id: string): Promise<ChildRequestRecord | undefined> =>
    parseRequest((await documents.get(keyOf(uid, id)))?.value);
  const write = async (request: ChildRequestRecord): Promise<void> => {
    await documents.write(keyOf(request.parent.uid, request.id), request as unknown as Json, 0);
    notify(connection, subjects.notifyChildRequests());
  };
  return {
    async add(request) {
      const { uid } = request.parent;
      if ((await get(uid, request.id)) !== undefined) return;
      await assertWithinLimits(connection, uid);
      const bytes = request.order?.kind === 'Spawn' ? Buffer.byteLength(JSON.stringify(request)) : 0;
      await quotaOf?.(uid).reserve('requests', bytes);
      await write(request);
    },
    addEnd: write,
    ...specialistRecords(connection, documents),
    async wait(uid, id, milliseconds, signal) {
      const until = connection.clock.monotonic() + milliseconds;
      const ended = AbortSignal.any([signal, connection.closed]);
      using notifications = new NotificationListener(connection, subjects.notifyInbox(uid));
      for (;;) {
        notifications.reset();
        const found = await get(uid, id);
        const leftMs = until - connection.clock.monotonic();
        if (found?.state !== 'Requested' || leftMs <= 0 || ended.aborted) return found;
        await notifications.wait(Math.min(leftMs, RECHECK_MS), ended);
      }
    },
    async end({ order: _order, ...request }, end) {
      const { uid } = request.parent;
      const stored = await documents.get(keyOf(uid, request.id));
      if (parseRequest(stored?.value)?.state !== 'Requested') return;
      const value = { ...request, ...end } as unknown as Json;
      await documents.write(keyOf(uid, request.id), value, stored?.revision ?? 0);
      notify(connection, subjects.notifyInbox(uid));
    },
    async open(after) {
      const requests: ChildRequestRecord[] = [];
      let sequence = after;
      for await (const { data, seq } of readMessages(connection, stream, everyRequest(), after + 1)) {
        const request = parseRequest(parseJsonBytes(data));
        if (request?.state === 'Requested') requests.push(request);
        sequence = seq;
      }
      return { requests, sequence };
    },
    async revision() {
      return (await lastMessage(connection, stream, everyRequest()))?.seq ?? 0;
    },
  };
}

function specialistRecords(
  connection: JetStreamConnection,
  documents: DocumentStore,
): Pick<ChildRequestStore, 'specialists' | 'ticket'> {
  return {
    async specialists(agentUid, message) {
      const found = await recordsOf(connection, agentUid);
      return found.filter(({ specialist }) => specialist?.message === message);
    },
    async ticket(agentUid, id, ticket) {
      const stored = await documents.get(keyOf(agentUid, id));
      const request = parseRequest(stored?.value);
      if (request?.specialist === undefined)
        throw new TemperError('TEMPER_NATS_DATA_LOST', 'NATS lost the request; repeat it');
      if (request.specialist.ticket !== undefined) return request.specialist.ticket;
      const value = { ...request, specialist: { ...request.specialist, ticket } } as unknown as Json;
      if ((await documents.write(keyOf(agentUid, id), value, stored?.revision ?? 0)) !== undefined) return ticket;
      return parseRequest((await documents.get(keyOf(agentUid, id)))?.value)?.specialist?.ticket ?? ticket;
    },
  };
}

function keyOf(uid: string, id: string): string {
  return `${token(uid)}.${token(id)}`;
}

function everyRequest(): string {
  return bucketSubject(BUCKETS.childRequests, '>');
}

async function assertWithinLimits(connection: JetStreamConnection, uid: string): Promise<void> {
  const all = await recordsOf(connection, uid);
  const open = all.filter(({ state }) => state === 'Requested').length;
  if (all.length < MAX_RECORDS && open < MAX_OPEN) return;
  const limit = open >= MAX_OPEN ? `${MAX_OPEN} open requests` : `${MAX_RECORDS} requests per day`;
  throw new TemperError('TEMPER_QUOTA_EXCEEDED', `an agent may have ${limit} about children; wait, then ask again`);
}

async function recordsOf(connection: JetStreamConnection, uid: string): Promise<ChildRequestRecord[]> {
  const found: ChildRequestRecord[] = [];
  const subject = bucketSubject(BUCKETS.childRequests, `${token(uid)}.*`);
  for await (const { data } of readMessages(connection, bucketStream(BUCKETS.childRequests), subject)) {
    const request = parseRequest(parseJsonBytes(data));
    if (request !== undefined) found.push(request);
  }
  return found;
}

const STATES: ReadonlySet<unknown> = new Set(['Requested', 'Done', 'Refused']);

/** Only gateways and the operator write these records, so their form is checked as far as it decides. */
function parseRequest(value: Json | undefined): ChildRequestRecord | undefined {
  if (!isJsonObject(value) || !STATES.has(value.state) || !isJsonObject(value.parent)) return undefined;
  const texts = [value.id, value.name, value.parent.uid, value.parent.name, value.parent.namespace];
  if (!texts.every((text) => typeof text === 'string')) return undefined;
  if (value.state === 'Requested' && !isJsonObject(value.order)) return undefined;
  if (value.specialist !== undefined && !isJsonObject(value.specialist)) return undefined;
  return value as unknown as ChildRequestRecord;
}
