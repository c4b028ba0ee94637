import type { AuditRecord } from '../audit/port.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { STREAMS, subjects } from './jetstream/names.ts';
import { deduplicationId, publish, type Published } from './jetstream/publish.ts';
import { readMessages } from './jetstream/stream-reader.ts';

export interface StoredAuditRecord extends AuditRecord {
  /** In its stream. */
  seq: number;
  /** RFC 3339, by the server's clock. */
  time: string;
}

/** The agent that a record is about. */
export interface AuditSource {
  namespace: string;
  agentUid: string;
}

type Evidence = AuditRecord['evidence'];

/**
 * What the work of an agent adds per call, session or schedule, as often as the agent likes. It stands in a stream that removes the oldest
 * records of the agent, so that no amount of work keeps a decision from being recorded.
 */
const WORK_ACTIONS: ReadonlySet<string> = new Set([
  'tool.call-started',
  'tool.brokered',
  'session.closed',
  'schedule.created',
  'schedule.deleted',
  'agent.refused',
]);

/**
 * Audit records with evidence, time and sequence. Observed records of decisions, observed records of work, and reported records have a
 * stream each, so that neither work nor reports remove a decision. Not a hash chain: every client that may publish to the streams can add
 * records.
 */
export interface NatsAudit {
  /**
   * Resolves with the record's sequence when it is stored. With `once`, only the first record of a namespace with this key is stored
   * within 30 minutes. Throws TEMPER_BUS_FULL for a decision that does not fit, and other TEMPER_BUS_*.
   */
  append(source: AuditSource, record: AuditRecord, once?: string): Promise<number>;
  /**
   * Stores a record unless a record of the namespace with this key was stored within 30 minutes; false then. True proves that no other
   * process stored it. Throws like `append`; after TEMPER_BUS_UNAVAILABLE the record may be stored.
   */
  appendFirst(source: AuditSource, record: AuditRecord, key: string): Promise<boolean>;
  /** Observed decisions, or reported records, after the sequence `after`, oldest first, at most `limit`. */
  read(namespace: string, evidence: Evidence, after: number, limit: number): Promise<StoredAuditRecord[]>;
  /** Decisions, work and reports, ordered by time, at most `limit` of each. */
  all(namespace: string, limit: number): Promise<StoredAuditRecord[]>;
}

export function createNatsAudit(connection: JetStreamConnection): NatsAudit {
  const readStream = async (
    { stream, subject }: Location,
    evidence: Evidence,
    after: number,
    limit: number,
  ): Promise<StoredAuditRecord[]> => {
    const found: StoredAuditRecord[] = [];
    if (limit <= 0) return found;
    for await (const { seq, time, data } of readMessages(connection, stream, subject, after + 1)) {
      const record = parseRecord(parseJsonBytes(data));
      // The audit stream of an older release also holds reported records.
      if (record?.evidence === evidence) found.push({ ...record, seq, time: time.toISOString() });
      if (found.length >= limit) break;
    }
    return found;
  };
  const store = (
    { namespace, agentUid }: AuditSource,
    { action, actor, evidence, subject, facts }: AuditRecord,
    once: string | undefined,
  ): Promise<Published> => {
    const record = { action, actor, evidence, subject, facts };
    const options = once === undefined ? {} : { id: deduplicationId(`${namespace}\n${once}`) };
    return publish(connection, locationOf(namespace, evidence, agentUid, action).subject, record, options);
  };
  return {
    append: async (source, record, once) => (await store(source, record, once))?.seq ?? 0,
    appendFirst: async (source, record, key) => (await store(source, record, key))?.duplicate !== true,
    read: (namespace, evidence, after, limit) =>
      readStream(locationOf(namespace, evidence, '*'), evidence, after, limit),
    async all(namespace, limit) {
      const kinds = await Promise.all([
        readStream(locationOf(namespace, 'observed', '*'), 'observed', 0, limit),
        readStream(activityOf(namespace, '*'), 'observed', 0, limit),
        readStream(locationOf(namespace, 'reported', '*'), 'reported', 0, limit),
      ]);
      return kinds.flat().sort((a, b) => (a.time < b.time ? -1 : Number(a.time > b.time)));
    },
  };
}

/** Where records are stored. */
interface Location {
  stream: string;
  subject: string;
}

function locationOf(namespace: string, evidence: Evidence, agentUid: string, action = ''): Location {
  if (evidence === 'reported') return { stream: STREAMS.reports, subject: subjects.reports(namespace, agentUid) };
  if (WORK_ACTIONS.has(action)) return activityOf(namespace, agentUid);
  return { stream: STREAMS.audit, subject: subjects.audit(namespace) };
}

function activityOf(namespace: string, agentUid: string): Location {
  return { stream: STREAMS.activity, subject: subjects.activity(namespace, agentUid) };
}

function parseRecord(value: Json | undefined): AuditRecord | undefined {
  if (!isJsonObject(value)) return undefined;
  const { action, actor, evidence, subject, facts } = value;
  if (typeof action !== 'string' || typeof actor !== 'string' || typeof subject !== 'string') return undefined;
  if ((evidence !== 'observed' && evidence !== 'reported') || !isJsonObject(facts)) return undefined;
  return { action, actor, evidence, subject, facts };
}
