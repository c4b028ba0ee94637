import type { AuditRecord } from '../audit/port.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { STREAMS, subjects } from './jetstream/names.ts';
import { deduplicationId, publish, type Published } from './jetstream/publish.ts';
import { parseJsonBytes, readMessages } from './jetstream/stream-reader.ts';

export interface StoredAuditRecord extends AuditRecord {
  /** In the stream of its evidence. */
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
 * Audit records with evidence, time and sequence. Observed and reported records have a stream each, so that no number of reports removes
 * what a gateway observed. Not a hash chain: every client that may publish to the streams can add records.
 */
export interface NatsAudit {
  /**
   * Resolves with the record's sequence when it is stored. With `once`, only the first record of a namespace with this key is stored
   * within 30 minutes. Throws TEMPER_BUS_FULL for an observed record that does not fit, and other TEMPER_BUS_*.
   */
  append(source: AuditSource, record: AuditRecord, once?: string): Promise<number>;
  /**
   * Stores a record unless a record of the namespace with this key was stored within 30 minutes; false then. True proves that no other
   * process stored it. Throws like `append`; after TEMPER_BUS_UNAVAILABLE the record may be stored.
   */
  appendFirst(source: AuditSource, record: AuditRecord, key: string): Promise<boolean>;
  /** Records of one kind after the sequence `after`, oldest first, at most `limit`. */
  read(namespace: string, evidence: Evidence, after: number, limit: number): Promise<StoredAuditRecord[]>;
  /** Records of both kinds, ordered by time, at most `limit` of each. */
  all(namespace: string, limit: number): Promise<StoredAuditRecord[]>;
}

export function createNatsAudit(connection: JetStreamConnection): NatsAudit {
  const read: NatsAudit['read'] = async (namespace, evidence, after, limit) => {
    const found: StoredAuditRecord[] = [];
    if (limit <= 0) return found;
    const isObserved = evidence === 'observed';
    const stream = isObserved ? STREAMS.audit : STREAMS.reports;
    const subject = isObserved ? subjects.audit(namespace) : subjects.reports(namespace, '*');
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
    const target = evidence === 'observed' ? subjects.audit(namespace) : subjects.reports(namespace, agentUid);
    return publish(connection, target, record, options);
  };
  return {
    append: async (source, record, once) => (await store(source, record, once))?.seq ?? 0,
    appendFirst: async (source, record, key) => (await store(source, record, key))?.duplicate !== true,
    read,
    async all(namespace, limit) {
      const [observed, reported] = await Promise.all([
        read(namespace, 'observed', 0, limit),
        read(namespace, 'reported', 0, limit),
      ]);
      return [...observed, ...reported].sort((a, b) => (a.time < b.time ? -1 : Number(a.time > b.time)));
    },
  };
}

function parseRecord(value: Json | undefined): AuditRecord | undefined {
  if (!isJsonObject(value)) return undefined;
  const { action, actor, evidence, subject, facts } = value;
  if (typeof action !== 'string' || typeof actor !== 'string' || typeof subject !== 'string') return undefined;
  if ((evidence !== 'observed' && evidence !== 'reported') || !isJsonObject(facts)) return undefined;
  return { action, actor, evidence, subject, facts };
}
