import type { AuditRecord } from '../../../audit/port.ts';
import type { Clock } from '../../../lib/clock.ts';
import { messageOf } from '../../../lib/errors.ts';
import { type Json, parseJsonBytes } from '../../../lib/json.ts';
import { createNatsAudit } from '../../../nats/audit.ts';
import { subjects } from '../../../nats/jetstream/names.ts';
import { createToolEvidence, type UsedTool } from '../../../nats/promotion/evidence.ts';
import {
  createPanelReviews,
  type PanelReviewRequest,
  type TesterRequest,
} from '../../../nats/promotion/panel-reviews.ts';
import { createPromotionRequests, type PromotionRequest } from '../../../nats/promotion/promotion-requests.ts';
import { createPromotionStates, type PromotionKey } from '../../../nats/promotion/promotion-states.ts';
import { createToolAuditStore, type ToolAudit } from '../../../nats/promotion/tool-audits.ts';
import { createTaskRecords, readToolRecords } from '../../../nats/tasks/task-records.ts';
import { createVerifications } from '../../../nats/promotion/verifications.ts';
import { openSessionRegistry } from '../../../nats/sessions/session-registry.ts';
import { createSessionStore } from '../../../nats/sessions/session-store.ts';
import { createEncryptedTexts } from '../../../nats/sources/encrypted-texts.ts';
import { createSourceCipher, type SourceCipher, type SourceKeyring } from '../../../nats/sources/source-cipher.ts';
import { createToolSources } from '../../../nats/sources/tool-sources.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { messageUses } from '../../../tempering/hygiene/tool-findings.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { PromotionStore } from '../../promotion/ports.ts';
import { notifications } from './notifications.ts';
import type { NatsLink } from '../nats-link.ts';

/** A notification may be lost: the waiting promotions are looked at again after this time. */
const LOOK_INTERVAL_MS = 5_000;

interface PromotionStoreDeps {
  link: NatsLink;
  log: Logger;
  clock: Clock;
  sourceKeys: SourceKeyring;
}

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export class NatsPromotionStore implements PromotionStore {
  readonly #link: NatsLink;
  readonly #log: Logger;
  readonly #cipher: SourceCipher;

  constructor({ link, log, clock, sourceKeys }: PromotionStoreDeps) {
    this.#link = link;
    this.#cipher = createSourceCipher(sourceKeys, clock);
    this.#log = log;
  }

  get #states() {
    return createPromotionStates(this.#link.current());
  }

  get #verifications() {
    return createVerifications(this.#link.current(), this.#cipher);
  }

  get #registry() {
    const connection = this.#link.current();
    const sources = createToolSources(createEncryptedTexts(connection, this.#cipher));
    return openSessionRegistry(connection, { sources });
  }

  get #evidence() {
    return createToolEvidence(this.#link.current());
  }

  async get(key: PromotionKey) {
    return this.#states.get(key);
  }

  async write(record: PromotionRecord, revision: number): Promise<boolean> {
    return (await this.#states.write(record, revision)) !== undefined;
  }

  async remove(key: PromotionKey): Promise<void> {
    await this.#states.remove(key);
  }

  async *list(signal: AbortSignal): AsyncIterable<PromotionRecord> {
    const connection = await this.#link.waitForConnection(signal);
    if (connection !== undefined) yield* createPromotionStates(connection).list();
  }

  async sessionTools(agentUid: string, session: string) {
    return this.#registry.tools(agentUid, session);
  }

  async isTainted(agentUid: string, session: string): Promise<boolean> {
    return createSessionStore(this.#link.current(), agentUid).isTainted(session);
  }

  async statistics(agentUid: string, tool: UsedTool) {
    return this.#evidence.statistics(agentUid, tool);
  }

  async messageUses(agentUid: string) {
    return messageUses((await readToolRecords(this.#link.current(), agentUid)).calls);
  }

  async recordedInputs(agentUid: string, tool: UsedTool, maxBytes: number) {
    return this.#evidence.recordedInputs(agentUid, tool, maxBytes);
  }

  async assign(podUid: string, round: number, work: Json): Promise<boolean> {
    return this.#verifications.assign(podUid, round, work);
  }

  async work(podUid: string, round: number) {
    const found = await this.#verifications.work(podUid, round);
    return found === undefined ? undefined : parseJsonBytes(found);
  }

  async outputs(podUid: string, round: number) {
    return this.#verifications.outputs(podUid, round);
  }

  async removeVerification(podUid: string): Promise<void> {
    await this.#verifications.remove(podUid);
  }

  async requestTesters(request: TesterRequest, repetition: number): Promise<void> {
    await createPanelReviews(this.#link.current()).requestTesters(request, repetition);
  }

  async testerAnswers(key: PromotionKey, attempt: string) {
    return this.#states.testerAnswers(key, attempt);
  }

  async requestReview(review: PanelReviewRequest, repetition: number): Promise<void> {
    await createPanelReviews(this.#link.current()).request(review, repetition);
  }

  async review(key: PromotionKey, attempt: string) {
    return this.#states.review(key, attempt);
  }

  async removeReviews(key: PromotionKey): Promise<void> {
    await this.#states.removeReviews(key);
  }

  changedAudits(after: number) {
    return createToolAuditStore(this.#link.current()).changed(after);
  }

  async writeAudit(audit: ToolAudit, revision: number) {
    return createToolAuditStore(this.#link.current()).write(audit, revision);
  }

  async recordFailures(
    agentUid: string,
    attempt: string,
    count: number,
    failure: { session: string; endedAt: number },
  ): Promise<void> {
    // The number is that of the tests and stored inputs of one tool, so the quota of the agent does not decide about it.
    const tasks = createTaskRecords(this.#link.current(), () => ({ reserve: async () => undefined }));
    for (let index = 0; index < count; index += 1) {
      await tasks.end(agentUid, { message: `${attempt}-${index}`, outcome: 'failed', deliveries: 1, ...failure });
    }
  }

  async audit(agent: { namespace: string; agentUid: string }, record: AuditRecord, once: string): Promise<void> {
    await createNatsAudit(this.#link.current()).append(agent, record, once);
  }

  async requests(take: (request: PromotionRequest) => Promise<void>, signal: AbortSignal): Promise<void> {
    const failed = (error: unknown): void => {
      if (!signal.aborted) this.#log.debug({ error: messageOf(error, 200) }, 'a promotion request cannot be taken yet');
    };
    while (!signal.aborted) {
      const connection = await this.#link.waitForConnection(signal);
      if (connection === undefined) return;
      await createPromotionRequests(connection).consume(take, AbortSignal.any([signal, connection.closed]), failed);
    }
  }

  async *results(signal: AbortSignal): AsyncIterable<void> {
    yield* notifications(this.#link, { subject: subjects.notifyPromotions(), intervalMs: LOOK_INTERVAL_MS }, signal);
  }
}
