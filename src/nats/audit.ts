import type { AuditRecord } from '../audit/port.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { STREAMS, subjects } from './jetstream/names.ts';
import { deduplicationId, publish } from './jetstream/publish.ts';
import { parseJsonBytes, readMessages } from './jetstream/stream-reader.ts';

export interface StoredAuditRecord extends AuditRecord {
  seq: number;
  /** RFC 3339, by the server's clock. */
  time: string;
}

/** Audit records with evidence, time and sequence. Not a hash chain: every client that may publish to the stream can add records. */
export interface NatsAudit {
  /**
   * Resolves with the record's sequence when it is stored. With `once`, only the first record of a namespace with this key is stored
   * within 30 minutes. Throws TEMPER_BUS_*.
   */
  append(namespace: string, record: AuditRecord, once?: string): Promise<number>;
  /** Records after the sequence `after`, oldest first, at most `limit`. */
  read(namespace: string, after: number, limit: number): Promise<StoredAuditRecord[]>;
}

export function createNatsAudit(connection: JetStreamConnection): NatsAudit {
  return {
    async append(namespace, { action, actor, evidence, subject, facts }, once) {
      const record = { action, actor, evidence, subject, facts };
      const options = once === undefined ? {} : { id: deduplicationId(`${namespace}\n${once}`) };
      const stored = await publish(connection, subjects.audit(namespace), record, options);
      return stored?.seq ?? 0;
    },
    async read(namespace, after, limit) {
      const found: StoredAuditRecord[] = [];
      if (limit <= 0) return found;
      for await (const { seq, time, data } of readMessages(
        connection,
        STREAMS.audit,
        subjects.audit(namespace),
        after + 1,
      )) {
        const record = parseRecord(parseJsonBytes(data));
        if (record !== undefined) found.push({ ...record, seq, time: time.toISOString() });
        if (found.length >= limit) break;
      }
      return found;
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
