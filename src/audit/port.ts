import type { JsonObject } from '../lib/json.ts';
import type { Durability } from '../lib/record-store.ts';

/** One auditable action. Facts only: no prompt, no arguments, no secret. */
export interface AuditRecord {
  /** `tool.accepted`, `tool.refused`, `tool.called`, `tool.promoted`, `tool.demoted`, `session.closed`, `approval.decided`, … */
  action: string;
  /** The actor: `agent/<name>`, `user/<name>` (a user), `system`. */
  actor: string;
  /** `observed` by the engine itself, or only reported by a pod (`claimed`). */
  evidence: 'observed' | 'reported';
  /** The object of the action: a tool's digest, a session's id. */
  subject: string;
  facts: JsonObject;
}

export interface ChainedRecord extends AuditRecord {
  seq: number;
  /** RFC 3339. */
  time: string;
  /** Digest of the previous record; for the first record, of the empty string. */
  previous: string;
  /** Digest over all the other members. */
  digest: string;
}

/** The last record known to be written. A copy stored elsewhere proves what a chain alone cannot: that its end was cut off. */
export interface Checkpoint {
  seq: number;
  digest: string;
}

export interface Audit {
  /**
   * Resolves when the record is as durable as requested, by default `synced`: actions that activate a tool are synced, tool calls are
   * only written. Throws TEMPER_AUDIT_CHAIN_INVALID at every call after a failed write or after another writer was detected, which happens
   * at the next checkpoint, about a second later. Not idempotent: each call adds a record.
   */
  append(record: AuditRecord, durability?: Durability): Promise<void>;
}

/** Read access to the whole chain. */
export interface AuditTrail extends Audit {
  /** Every record, in order, verified. Throws TEMPER_AUDIT_CHAIN_INVALID with the number of the first invalid record. */
  records(): Promise<ChainedRecord[]>;
  /** The last written record; undefined for an empty chain. */
  head(): Checkpoint | undefined;
  /** Resolves when the stored checkpoint refers to the last record. Call it before the process ends. */
  flush(): Promise<void>;
}
