import type { AuditRecord } from '../../audit/port.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { PanelReviewRequest, TesterRequest } from '../../nats/promotion/panel-reviews.ts';
import type { PromotionKey } from '../../nats/promotion/promotion-states.ts';
import type { StoredToolAudit, ToolAudit } from '../../nats/promotion/tool-audits.ts';
import type { TesterAnswer } from '../../tempering/examination/testers/ask-tester.ts';
import type { PanelVerdict } from '../../tempering/judge/panel.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { RecordedInput, RegisteredTool, ToolStatistics } from '../../tempering/types.ts';
import type { PromotionStore } from './ports.ts';

/** A store of promotions in memory, which outlives the reconcilers of a test as NATS outlives operators. */
export class MemoryPromotions implements PromotionStore {
  readonly states = new Map<string, { record: PromotionRecord; revision: number }>();
  /** By pod UID, and by `<pod UID> <round>` for the rounds of an examination. */
  readonly works = new Map<string, Json>();
  readonly sent = new Map<string, Json>();
  readonly reviewRequests: PanelReviewRequest[] = [];
  readonly testerRequests: TesterRequest[] = [];
  /** By attempt. */
  readonly answers = new Map<string, TesterAnswer[]>();
  readonly verdicts = new Map<string, PanelVerdict>();
  /** By deduplication key. */
  readonly records = new Map<string, AuditRecord>();
  /** Failed tasks, by name. */
  readonly failures = new Set<string>();
  /** By id. */
  readonly audits = new Map<string, StoredToolAudit>();
  registered: RegisteredTool | undefined;
  tainted = false;
  inputs: RecordedInput[] = [];
  /** By digest. */
  messages = new Map<Digest, { rootMessages: number; lastUsedAt: string }>();
  uses: ToolStatistics | undefined;
  #revision = 0;

  async get(key: PromotionKey) {
    return this.states.get(keyOf(key)) ?? { record: undefined, revision: 0 };
  }

  async write(record: PromotionRecord, revision: number): Promise<boolean> {
    const key = keyOf({ agentUid: record.agent.uid, digest: record.digest });
    if ((this.states.get(key)?.revision ?? 0) !== revision) return false;
    this.#revision += 1;
    this.states.set(key, { record, revision: this.#revision });
    return true;
  }

  async remove(key: PromotionKey): Promise<void> {
    this.states.delete(keyOf(key));
  }

  async *changedAudits(after: number): AsyncIterable<StoredToolAudit> {
    for (const stored of this.audits.values()) if (stored.revision > after) yield stored;
  }

  async writeAudit(audit: ToolAudit, revision: number): Promise<number | undefined> {
    if ((this.audits.get(audit.id)?.revision ?? 0) !== revision) return undefined;
    this.#revision += 1;
    this.audits.set(audit.id, { audit, revision: this.#revision });
    return this.#revision;
  }

  async *list(): AsyncIterable<PromotionRecord> {
    for (const { record } of this.states.values()) yield record;
  }

  async sessionTools() {
    return this.registered === undefined ? [] : [this.registered];
  }

  async isTainted(): Promise<boolean> {
    return this.tainted;
  }

  async statistics(_agentUid?: string): Promise<ToolStatistics> {
    if (this.uses === undefined) throw new Error('the test has no uses');
    return this.uses;
  }

  async messageUses() {
    return this.messages;
  }

  async recordedInputs(): Promise<RecordedInput[]> {
    return this.inputs;
  }

  async assign(podUid: string, round: number, work: Json): Promise<boolean> {
    if (this.works.has(roundKey(podUid, round))) return false;
    this.works.set(roundKey(podUid, round), work);
    return true;
  }

  async work(podUid: string, round: number) {
    return this.works.get(roundKey(podUid, round));
  }

  async outputs(podUid: string, round: number) {
    return this.sent.get(roundKey(podUid, round));
  }

  async removeVerification(podUid: string): Promise<void> {
    for (const map of [this.works, this.sent]) {
      for (const key of map.keys()) if (key === podUid || key.startsWith(`${podUid} `)) map.delete(key);
    }
  }

  async requestTesters(request: TesterRequest): Promise<void> {
    this.testerRequests.push(request);
  }

  async testerAnswers(_key: PromotionKey, attempt: string) {
    return this.answers.get(attempt);
  }

  async requestReview(review: PanelReviewRequest): Promise<void> {
    this.reviewRequests.push(review);
  }

  async review(_key: PromotionKey, attempt: string) {
    return this.verdicts.get(attempt);
  }

  async removeReviews(): Promise<void> {
    this.verdicts.clear();
  }

  async recordFailures(_agentUid: string, attempt: string, count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) this.failures.add(`${attempt}-${index}`);
  }

  async audit(_agent: object, record: AuditRecord, once: string): Promise<void> {
    if (!this.records.has(once)) this.records.set(once, record);
  }

  async requests(): Promise<void> {}

  async *results(): AsyncIterable<void> {}
}

function keyOf({ agentUid, digest }: PromotionKey): string {
  return `${agentUid}/${digest}`;
}

function roundKey(podUid: string, round: number): string {
  return round === 0 ? podUid : `${podUid} ${round}`;
}
