import type { JudgeVerdict } from '../../forge/types.ts';
import { type Digest, digestOf, isDigest, sha256 } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf } from '../registry/object-name.ts';

export interface PromotionSubject {
  digest: Digest;
  tool: string;
  agent: string;
  namespace: string;
  to: 'Agent' | 'Shared';
}

/** State of a promotion that is stored between two evaluations of a tool. */
export type StoredPromotionState = PromotionSubject &
  (
    | { state: 'Rejected'; reason: string; coolDownUntil: string }
    /** What stopped the last attempt without a verdict. It blocks no other attempt. */
    | { state: 'Candidate'; missing: string[] }
    /** `verdicts`: the verdicts of the panel, stored until the approver decides. */
    | { state: 'AwaitingApproval'; request: string; nonce: string; verdicts: JudgeVerdict[] }
  );

/** Stores promotion states as documents `promotions/<digest>.<owner>.<tier>`. */
export interface PromotionStateStore {
  read(subject: PromotionSubject): Promise<StoredPromotionState | undefined>;
  write(note: StoredPromotionState): Promise<void>;
  delete(subject: PromotionSubject): Promise<void>;
  /** The promotions that await an approval. */
  awaitingApproval(): Promise<Extract<StoredPromotionState, { state: 'AwaitingApproval' }>[]>;
}

const COLLECTION = 'promotions';

/** The subject of an approval: this digest, tier and namespace, for this one request (nonce). */
export function approvalSubject({ digest, namespace, to }: PromotionSubject, nonce: string): Digest {
  return digestOf({ digest, namespace, tier: to, nonce });
}

export function createPromotionStateStore(records: RecordStore): PromotionStateStore {
  return {
    async read(subject) {
      return parseNote((await records.get(COLLECTION, nameOf(subject))) ?? null, subject);
    },
    write: (note) => records.put(COLLECTION, nameOf(note), note as unknown as JsonObject),
    delete: (subject) => records.delete(COLLECTION, nameOf(subject)),
    async awaitingApproval() {
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
function parseNote(value: Json, subject: PromotionSubject): StoredPromotionState | undefined {
  if (!isJsonObject(value) || !isDigest(value.digest)) return undefined;
  const { digest, agent, namespace, to } = subject;
  if (value.digest !== digest || value.agent !== agent || value.namespace !== namespace || value.to !== to)
    return undefined;
  return isComplete(value) ? (value as unknown as StoredPromotionState) : undefined;
}

function isComplete({ state, reason, coolDownUntil, missing, request, nonce, verdicts }: JsonObject): boolean {
  switch (state) {
    case 'Rejected':
      return areTexts([reason, coolDownUntil]);
    case 'Candidate':
      return areTexts(missing);
    case 'AwaitingApproval':
      return areTexts([request, nonce]) && Array.isArray(verdicts);
    default:
      return false;
  }
}

function areTexts(values: readonly (Json | undefined)[] | Json | undefined): boolean {
  return Array.isArray(values) && values.every((value) => typeof value === 'string');
}
