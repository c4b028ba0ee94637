import type { JsonObject } from '../lib/json.ts';

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

export interface Audit {
  append(record: AuditRecord): Promise<void>;
}
