import { digestOf, sha256 } from '../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { AuditRecord, ChainedRecord, Checkpoint } from './port.ts';

/** `previous` of the first record of a chain. */
export const EMPTY_DIGEST = sha256('');

/** The chained record that follows `last`. */
export function chainRecord(record: AuditRecord, last: Checkpoint | undefined, time: string): ChainedRecord {
  const content = {
    action: record.action,
    actor: record.actor,
    evidence: record.evidence,
    subject: record.subject,
    facts: structuredClone(record.facts),
    seq: (last?.seq ?? 0) + 1,
    time,
    previous: last?.digest ?? EMPTY_DIGEST,
  };
  return { ...content, digest: digestOf(content) };
}

/** Where and how a chain is broken. */
export interface ChainProblem {
  /** 1 for the first record; the number of records plus one when the end is missing. */
  seq: number;
  problem: string;
}

/**
 * Finds the first record that was edited, removed, moved or forked; with `checkpoint`, also a missing end.
 * Records after the checkpoint are allowed: a crash may fall between a record and its checkpoint.
 */
export function verifyChain(records: readonly Json[], checkpoint?: Checkpoint): ChainProblem | undefined {
  let last: Checkpoint | undefined;
  for (const value of records) {
    const seq = (last?.seq ?? 0) + 1;
    const problem = problemOf(value, last);
    if (problem !== undefined) return { seq, problem };
    last = value as unknown as ChainedRecord;
    if (last.seq === checkpoint?.seq && last.digest !== checkpoint.digest) {
      return { seq, problem: 'is not the record of the checkpoint; the chain was rewritten' };
    }
  }
  const length = last?.seq ?? 0;
  if (checkpoint !== undefined && checkpoint.seq > length) {
    return {
      seq: length + 1,
      problem: `is missing, like all records up to ${checkpoint.seq}; the end was cut off or an old copy was restored`,
    };
  }
  return undefined;
}

function problemOf(value: Json, last: Checkpoint | undefined): string | undefined {
  if (!isChainedRecord(value)) return 'is not an audit record';
  const expected = (last?.seq ?? 0) + 1;
  if (value.seq !== expected)
    return `has number ${value.seq}; a record was removed, moved or written by a second writer`;
  if (value.previous !== (last?.digest ?? EMPTY_DIGEST)) return 'does not follow the previous record';
  const { digest, signature: _, ...content } = value as JsonObject;
  return digest === digestOf(content) ? undefined : 'was edited';
}

const TEXT_MEMBERS = ['action', 'actor', 'subject', 'time', 'previous', 'digest'] as const;

function isChainedRecord(value: Json): value is JsonObject & ChainedRecord {
  if (!isJsonObject(value)) return false;
  if (!Number.isSafeInteger(value.seq) || !isJsonObject(value.facts)) return false;
  if (value.evidence !== 'observed' && value.evidence !== 'reported') return false;
  return TEXT_MEMBERS.every((member) => typeof value[member] === 'string');
}
