import type { Digest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { TesterAnswer } from '../../tempering/examination/testers/ask-tester.ts';
import type { PanelVerdict } from '../../tempering/judge/panel.ts';
import { parsePromotionRecord, type PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { createChunkedValues } from './chunked-values.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { purge, readMessages } from '../jetstream/stream-reader.ts';

export interface StoredPromotion {
  /** Undefined without a state, and for a value that is not a valid one. */
  record: PromotionRecord | undefined;
  /** For the next write; 0 without a state. */
  revision: number;
}

/** The tool of a promotion: the agent that forged it, and its digest. */
export interface PromotionKey {
  agentUid: string;
  digest: Digest;
}

/** The promotions of all agents, and the verdicts of their panels. Methods throw TEMPER_BUS_*. */
export interface PromotionStates {
  get(key: PromotionKey): Promise<StoredPromotion>;
  /** Returns the new revision; undefined when another writer was faster. `revision` 0: only if there is no state. */
  write(record: PromotionRecord, revision: number): Promise<number | undefined>;
  /** Every state, in no particular order. Entries that are not valid are omitted. */
  list(): AsyncIterable<PromotionRecord>;
  /** Removes the state and its verdicts. */
  remove(key: PromotionKey): Promise<void>;
  /** The verdict of the panel about this attempt. */
  review(key: PromotionKey, attempt: string): Promise<PanelVerdict | undefined>;
  /** Stores the verdict of an attempt; the first one stays. */
  putReview(key: PromotionKey, attempt: string, verdict: PanelVerdict): Promise<void>;
  /** What the testers answered for this attempt. */
  testerAnswers(key: PromotionKey, attempt: string): Promise<TesterAnswer[] | undefined>;
  /** Stores the answers of an attempt; the first ones stay. */
  putTesterAnswers(key: PromotionKey, attempt: string, answers: readonly TesterAnswer[]): Promise<void>;
  /** Removes verdicts and answers. */
  removeReviews(key: PromotionKey): Promise<void>;
}

const BUCKET = BUCKETS.promotionStates;

export function createPromotionStates(connection: JetStreamConnection): PromotionStates {
  const documents = createDocumentStore(connection, BUCKET);
  // The cases of both testers together may be larger than one message.
  const values = createChunkedValues(connection, BUCKET);
  return {
    async get(key) {
      const found = await documents.get(stateKey(key));
      return { record: parsePromotionRecord(found?.value), revision: found?.revision ?? 0 };
    },
    write: (record, revision) =>
      documents.write(
        stateKey({ agentUid: record.agent.uid, digest: record.digest }),
        record as unknown as Json,
        revision,
      ),
    async *list() {
      const filter = bucketSubject(BUCKET, '*.*');
      for await (const { data } of readMessages(connection, bucketStream(BUCKET), filter)) {
        const record = parsePromotionRecord(parseJsonBytes(data));
        if (record !== undefined) yield record;
      }
    },
    async remove(key) {
      await purge(connection, bucketStream(BUCKET), bucketSubject(BUCKET, `${stateKey(key)}.>`));
      await purge(connection, bucketStream(BUCKET), bucketSubject(BUCKET, stateKey(key)));
    },
    async review(key, attempt) {
      return parseVerdict((await documents.get(reviewKey(key, attempt)))?.value);
    },
    async putReview(key, attempt, verdict) {
      await documents.write(reviewKey(key, attempt), verdict as unknown as Json, 0);
    },
    async testerAnswers(key, attempt) {
      const stored = await values.get(testersKey(key, attempt));
      const answers = stored === undefined ? undefined : parseJsonBytes(stored);
      return Array.isArray(answers) ? (answers as unknown as TesterAnswer[]) : undefined;
    },
    async putTesterAnswers(key, attempt, answers) {
      await values.put(testersKey(key, attempt), Buffer.from(JSON.stringify(answers)));
    },
    async removeReviews(key) {
      await purge(connection, bucketStream(BUCKET), bucketSubject(BUCKET, `${stateKey(key)}.>`));
    },
  };
}

function stateKey({ agentUid, digest }: PromotionKey): string {
  return `${token(agentUid)}.${token(digest.slice('sha256:'.length))}`;
}

function reviewKey(key: PromotionKey, attempt: string): string {
  return `${stateKey(key)}.review.${token(attempt)}`;
}

function testersKey(key: PromotionKey, attempt: string): string {
  return `${stateKey(key)}.testers.${token(attempt)}`;
}

function parseVerdict(value: Json | undefined): PanelVerdict | undefined {
  if (!isJsonObject(value) || !Array.isArray(value.verdicts) || value.verdicts.length !== 2) return undefined;
  const isValid =
    typeof value.approved === 'boolean' &&
    typeof value.confidence === 'number' &&
    typeof value.reasoning === 'string' &&
    value.verdicts.every(
      (verdict) =>
        isJsonObject(verdict) && typeof verdict.approved === 'boolean' && typeof verdict.confidence === 'number',
    );
  return isValid ? (value as unknown as PanelVerdict) : undefined;
}
