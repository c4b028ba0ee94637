import type { AuditRecord } from '../../audit/port.ts';
import type { Json } from '../../lib/json.ts';
import type { UsedTool } from '../../nats/promotion/evidence.ts';
import type { PanelReviewRequest, TesterRequest } from '../../nats/promotion/panel-reviews.ts';
import type { PromotionRequest } from '../../nats/promotion/promotion-requests.ts';
import type { PromotionKey, StoredPromotion } from '../../nats/promotion/promotion-states.ts';
import type { StoredToolAudit, ToolAudit } from '../../nats/promotion/tool-audits.ts';
import type { TesterAnswer } from '../../tempering/examination/testers/ask-tester.ts';
import type { messageUses } from '../../tempering/hygiene/tool-findings.ts';
import type { PanelVerdict } from '../../tempering/judge/panel.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { RecordedInput, RegisteredTool, ToolStatistics } from '../../tempering/types.ts';

/** What a promotion reads and writes in NATS. Except where noted, methods throw TEMPER_BUS_UNAVAILABLE while NATS is unreachable. */
export interface PromotionStore {
  get(key: PromotionKey): Promise<StoredPromotion>;
  /** False when another writer was faster. `revision` 0: only if there is no state. */
  write(record: PromotionRecord, revision: number): Promise<boolean>;
  remove(key: PromotionKey): Promise<void>;
  /** Every promotion. Waits while NATS is unreachable; ends with the signal. */
  list(signal: AbortSignal): AsyncIterable<PromotionRecord>;
  /** The tools of the session. */
  sessionTools(agentUid: string, session: string): Promise<RegisteredTool[]>;
  isTainted(agentUid: string, session: string): Promise<boolean>;
  statistics(agentUid: string, tool: UsedTool): Promise<ToolStatistics>;
  /** How many messages of the agent used each tool, by what its pod reports. */
  messageUses(agentUid: string): Promise<ReturnType<typeof messageUses>>;
  recordedInputs(agentUid: string, tool: UsedTool, maxBytes: number): Promise<RecordedInput[]>;
  /** False when the pod has work of the round already. */
  assign(podUid: string, round: number, work: Json): Promise<boolean>;
  work(podUid: string, round: number): Promise<Json | undefined>;
  outputs(podUid: string, round: number): Promise<Json | undefined>;
  removeVerification(podUid: string): Promise<void>;
  requestTesters(request: TesterRequest, repetition: number): Promise<void>;
  /** The cases of the testers for this attempt. */
  testerAnswers(key: PromotionKey, attempt: string): Promise<TesterAnswer[] | undefined>;
  requestReview(review: PanelReviewRequest, repetition: number): Promise<void>;
  review(key: PromotionKey, attempt: string): Promise<PanelVerdict | undefined>;
  removeReviews(key: PromotionKey): Promise<void>;
  /** Audits of tools by fresh agents that were written after the sequence, oldest first. */
  changedAudits(after: number): AsyncIterable<StoredToolAudit>;
  /** Returns the new revision; undefined when another writer was faster. */
  writeAudit(audit: ToolAudit, revision: number): Promise<number | undefined>;
  /** Records reports of a pod that re-runs contradict as failed tasks of its agent. Idempotent per attempt. */
  recordFailures(
    agentUid: string,
    attempt: string,
    count: number,
    failure: { session: string; endedAt: number },
  ): Promise<void>;
  /** Only the first record of a namespace with this key is stored within 30 minutes. */
  audit(agent: { namespace: string; agentUid: string }, record: AuditRecord, once: string): Promise<void>;
  /** Calls `take` for each request until the signal aborts; waits while NATS is unreachable. Does not throw. */
  requests(take: (request: PromotionRequest) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** Emits when a verifier or a panel has a result. A notification may be lost. Does not throw. Ends with the signal. */
  results(signal: AbortSignal): AsyncIterable<void>;
}
