import type { AuditRecord } from '../audit/port.ts';
import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

export interface StoredAuditRecord extends AuditRecord {
  seq: number;
  /** RFC 3339, the server's. */
  time: string;
}

/** Plain records with evidence, time and sequence. There is no chain over them: who may write the stream may add to it. */
export interface BusAudit {
  /** Resolves when the record is stored. */
  append(namespace: string, record: AuditRecord): Promise<number>;
  /** Oldest first. */
  read(namespace: string, after: number, limit: number): Promise<StoredAuditRecord[]>;
}

export function createAudit(_connection: BusConnection): BusAudit {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
