import type { JsonObject } from '../lib/json.ts';
import type { Durability } from '../lib/records.ts';

/** One thing that happened and must not be forgotten. Facts only: no prompt, no arguments, no secret. */
export interface AuditRecord {
  /** `tool.accepted`, `tool.refused`, `tool.called`, `tool.promoted`, `tool.demoted`, `session.closed`, `approval.decided`, … */
  action: string;
  /** Who did it: `agent/<name>`, `person/<name>`, `system`. */
  actor: string;
  /** Was it seen by the engine itself, or only said by a pod? */
  evidence: 'observed' | 'claimed';
  /** What it was done to: a tool's digest, a session's id. */
  subject: string;
  facts: JsonObject;
}

export interface ChainedRecord extends AuditRecord {
  seq: number;
  /** RFC 3339. */
  time: string;
  /** Digest of the previous record; of nothing for the first. */
  previous: string;
  /** Digest over all the other members. */
  digest: string;
}

/** The last record known to have been written. Kept elsewhere, it shows what a chain alone cannot: that its end was cut off. */
export interface Checkpoint {
  seq: number;
  digest: string;
}

export interface Audit {
  /**
   * Resolves when the record is synced, or as durable as asked for: what makes a tool active is synced, that a tool was called
   * is written. Throws TEMPER_AUDIT_BROKEN at every call after another writer was found, which is at the next checkpoint, a
   * moment later.
   */
  append(record: AuditRecord, durability?: Durability): Promise<void>;
}

/** The whole chain, for who decides by it. */
export interface AuditTrail extends Audit {
  /** Every record, in order, verified. Throws TEMPER_AUDIT_BROKEN and names the first record that does not fit. */
  records(): Promise<ChainedRecord[]>;
  head(): Checkpoint | undefined;
  /** Resolves when the stored checkpoint names the last record. Call it before the process ends. */
  flush(): Promise<void>;
}
