import type { Verdict } from '../forge/types.ts';
import { type Digest, digestOf, isDigest, sha256 } from '../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import { hexOf } from './object-name.ts';

export interface PromotionSubject {
  digest: Digest;
  tool: string;
  agent: string;
  namespace: string;
  to: 'Agent' | 'Shared';
}

/** State of a promotion that is stored between two evaluations of a tool. */
export type PromotionNote = PromotionSubject &
  (
    | { state: 'Rejected'; reason: string; coolDownUntil: string }
    /** `verdicts`: the verdicts of the panel, stored until the approver decides. */
    | { state: 'AwaitingApproval'; request: string; nonce: string; verdicts: Verdict[] }
  );

/** Stores promotion states as documents `promotions/<digest>.<owner>.<tier>`. */
export interface PromotionNotes {
  read(subject: PromotionSubject): Promise<PromotionNote | undefined>;
  write(note: PromotionNote): Promise<void>;
  forget(subject: PromotionSubject): Promise<void>;
  /** The promotions that await an approval. */
  waiting(): Promise<Extract<PromotionNote, { state: 'AwaitingApproval' }>[]>;
}

const COLLECTION = 'promotions';

/** The subject of an approval: this digest, tier and namespace, for this one request (nonce). */
export function approvalSubject({ digest, namespace, to }: PromotionSubject, nonce: string): Digest {
  return digestOf({ digest, namespace, tier: to, nonce });
}

export function createPromotionNotes(records: RecordStore): PromotionNotes {
  return {
    async read(subject) {
      return parseNote((await records.get(COLLECTION, nameOf(subject))) ?? null, subject);
    },
    write: (note) => records.put(COLLECTION, nameOf(note), note as unknown as JsonObject),
    forget: (subject) => records.delete(COLLECTION, nameOf(subject)),
    async waiting() {
      const all = await records.list(COLLECTION);
      const notes = all.map(({ value }) =>
        isJsonObject(value) ? parseNote(value, value as unknown as PromotionSubject) : undefined,
      );
      return notes.filter((note) => note?.state === 'AwaitingApproval');
    },
  };
}

function nameOf({ digest, agent, namespace, to }: PromotionSubject): string {
  return `${hexOf(digest)}.${sha256(`${namespace}/${agent}`).slice('sha256:'.length, 'sha256:'.length + 16)}.${to}`;
}

/** Returns undefined for a manually edited document or one of another tool: the promotion then starts again. */
function parseNote(value: Json, subject: PromotionSubject): PromotionNote | undefined {
  if (!isJsonObject(value) || !isDigest(value.digest)) return undefined;
  const { digest, agent, namespace, to } = subject;
  if (value.digest !== digest || value.agent !== agent || value.namespace !== namespace || value.to !== to)
    return undefined;
  const texts = value.state === 'Rejected' ? [value.reason, value.coolDownUntil] : [value.request, value.nonce];
  const isComplete =
    texts.every((text) => typeof text === 'string') && (value.state === 'Rejected' || Array.isArray(value.verdicts));
  return isComplete && (value.state === 'Rejected' || value.state === 'AwaitingApproval')
    ? (value as unknown as PromotionNote)
    : undefined;
}
