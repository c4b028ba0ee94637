import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import type { PromotionRequest } from '../../nats/promotion/promotion-requests.ts';
import type { PromotionKey } from '../../nats/promotion/promotion-states.ts';
import {
  isOpenForRequests,
  isSettled,
  type PromotedSubject,
  type PromotionRecord,
  type PromotionStage,
} from '../../tempering/promotion/promotion-record.ts';
import { admissibleInputs } from '../../tempering/promotion/recording-rules.ts';
import { VERIFICATION_TIMEOUT_MS } from '../../tempering/verification/verification-case.ts';
import { INDEX } from '../agent/observe.ts';
import { type ConcludeDeps, concludePromoted, concludeRejected } from './conclude.ts';
import { observePromotion, type ObservePromotionDeps, type PromotionSnapshot } from './observe.ts';
import { planPromotion, type ClusterPromotionStep } from './plan.ts';
import { parseQueueKey, queueKeyOf } from './queue-key.ts';
import { expectedRerun, verificationWork } from './verification.ts';

export interface PromotionReconcilerDeps extends ObservePromotionDeps, ConcludeDeps {
  readonly client: ObservePromotionDeps['client'] & ConcludeDeps['client'];
  readonly ids: IdGenerator;
}

/** Recorded inputs of one verification, which a pod and two gateways hold. */
const MAX_INPUT_BYTES = 4 * 1_024 * 1_024;
/** Beyond the time that the pod takes: its start of the work and the way of its outputs. */
const DEADLINE_GRACE_MS = 60_000;
/** Results are notified; a notification may be lost. */
const WAIT_MS = 5_000;

/** The only writer of the states of promotions. Each reconcile reads, plans and takes one step; a lost race reads again. */
export class PromotionReconciler {
  readonly #deps: PromotionReconcilerDeps;
  /** Work queue keys of the promotions that wait for a verifier or a panel. */
  readonly #waiting = new Set<string>();

  constructor(deps: PromotionReconcilerDeps) {
    this.#deps = deps;
  }

  /** Starts an attempt for a request, and returns its work queue key; undefined when the request changes nothing. Idempotent. */
  async accept({ agentUid, digest, session }: PromotionRequest): Promise<string | undefined> {
    const { store, clock, ids, agents } = this.#deps;
    const [agent] = agents.byIndex(INDEX.uid, agentUid);
    const { record, revision } = await store.get({ agentUid, digest });
    const now = clock.now();
    if (agent === undefined || !isOpenForRequests(record, now)) return undefined;
    const tool = await store.tool(agentUid, session, digest);
    if (tool === undefined) return undefined;
    const { namespace, name, uid } = agent.metadata;
    const subject: PromotedSubject = { agent: { namespace, name, uid }, tool: tool.artifact.name, digest, session };
    const stage: PromotionStage = { state: 'Requested', tries: { failed: 0, lastProblem: '' } };
    await store.write({ ...subject, attempt: ids.next('promotion'), since: now.toISOString(), ...stage }, revision);
    return queueKeyOf(subject);
  }

  /** Work queue keys of the promotions that wait for a result. */
  waiting(): readonly string[] {
    return [...this.#waiting];
  }

  /** Finds the promotions that an earlier leader left; calls `requeue` for each. */
  async resume(requeue: (key: string) => void, signal: AbortSignal): Promise<void> {
    const { store, verifierPods } = this.#deps;
    for await (const record of store.list(signal)) {
      if (isSettled(record)) continue;
      if (record.state === 'Verifying') verifierPods.use(record.pod.uid, record.agent.namespace);
      requeue(queueKeyOf(record));
    }
    if (!signal.aborted) verifierPods.listed();
  }

  async reconcile(key: string, context: ReconcileContext): Promise<ReconcileResult> {
    const promotion = parseQueueKey(key);
    if (promotion === undefined) return { kind: 'done' };
    try {
      return await this.#reconcile(key, promotion, context);
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  async #reconcile(key: string, promotion: PromotionKey, { log, signal }: ReconcileContext): Promise<ReconcileResult> {
    const { record, revision } = await this.#deps.store.get(promotion);
    if (record === undefined) {
      this.#waiting.delete(key);
      this.#deps.verifierPods.forget(key);
      return { kind: 'done' };
    }
    const snapshot = await observePromotion(this.#deps, record, signal);
    const step = planPromotion(snapshot.observed);
    if (step.step !== 'verify') this.#deps.verifierPods.forget(key);
    if (step.step === 'wait' || step.step === 'askPanel' || step.step === 'verify') this.#waiting.add(key);
    else this.#waiting.delete(key);
    const scope = { key, promotion, record, revision, snapshot, signal };
    const result = await this.#take(step, scope);
    if (step.step === 'enter') {
      const { agent, tool, digest, attempt } = record;
      const fields = { namespace: agent.namespace, agent: agent.name, tool, digest, attempt };
      log.info({ ...fields, from: record.state, to: step.stage.state }, 'promotion');
    }
    return result;
  }

  async #take(step: ClusterPromotionStep, scope: StepScope): Promise<ReconcileResult> {
    switch (step.step) {
      case 'done':
        return { kind: 'done' };
      case 'wait':
        return { kind: 'requeueAfter', afterMs: WAIT_MS };
      case 'forget':
        await this.#leave(scope);
        await this.#deps.store.remove(scope.promotion);
        return { kind: 'done' };
      case 'enter':
        return this.#enter(step.stage, scope);
      case 'verify':
        return this.#verify(scope);
      case 'askPanel':
        await this.#askPanel(scope, step.repetition);
        return { kind: 'requeueAfter', afterMs: WAIT_MS };
      case 'conclude':
        return this.#conclude(scope);
    }
  }

  async #enter(stage: PromotionStage, scope: StepScope): Promise<ReconcileResult> {
    const { agent, tool, digest, session, attempt: previous } = scope.record;
    // Each verification is an attempt of its own, so that a late output of the previous pod is none of this one.
    const attempt = stage.state === 'Requested' ? this.#deps.ids.next('promotion') : previous;
    const since = this.#deps.clock.now().toISOString();
    const written = await this.#deps.store.write(
      { agent, tool, digest, session, attempt, since, ...stage },
      scope.revision,
    );
    if (written) await this.#leave(scope);
    return { kind: 'requeueAfter', afterMs: 0 };
  }

  /** Pod, then work, then state: what a crash in between leaves is a pod that no promotion names, and the operator deletes it. */
  async #verify(scope: StepScope): Promise<ReconcileResult> {
    const { store, verifierPods, examinations, clock } = this.#deps;
    const { key, record, snapshot, signal } = scope;
    const { observed, tool } = snapshot;
    if (observed.record.state !== 'Requested' || !('dependencies' in observed) || tool === undefined) {
      return { kind: 'requeueAfter', afterMs: WAIT_MS };
    }
    const { namespace, uid } = record.agent;
    const pod = await verifierPods.claim({ key, namespace, attempt: record.attempt }, signal);
    if (pod === undefined) return { kind: 'requeueAfter', afterMs: WAIT_MS };
    const { name, uid: podUid = '' } = pod.metadata;
    try {
      const stored = await store.recordedInputs(uid, { digest: record.digest, namespace }, MAX_INPUT_BYTES);
      const recorded = admissibleInputs(stored, 'Agent', observed.rules);
      const verified = { tool, attempt: record.attempt, examinations };
      const work = verificationWork(verified, recorded, observed.dependencies);
      const deadline = clock.now().getTime() + VERIFICATION_TIMEOUT_MS + DEADLINE_GRACE_MS;
      const stage: PromotionStage = {
        state: 'Verifying',
        tries: observed.record.tries,
        pod: { name, uid: podUid },
        deadline: new Date(deadline).toISOString(),
        recorded: recorded.map(expectedRerun),
      };
      const since = clock.now().toISOString();
      const assigned = await store.assign(podUid, work as unknown as Json);
      const { agent, tool: toolName, digest, session, attempt } = record;
      const next = { agent, tool: toolName, digest, session, attempt, since, ...stage };
      if (assigned && (await store.write(next, scope.revision))) return { kind: 'requeueAfter', afterMs: WAIT_MS };
    } catch (error) {
      verifierPods.release(podUid);
      throw error;
    }
    verifierPods.release(podUid);
    return { kind: 'requeueAfter', afterMs: 0 };
  }

  async #askPanel({ record }: StepScope, repetition: number): Promise<void> {
    if (record.state !== 'PanelReview') return;
    const { digest, session, attempt, figures, facts } = record;
    const review = { agentUid: record.agent.uid, session, digest, attempt, facts: { ...figures, ...facts } };
    await this.#deps.store.requestReview(review, repetition);
  }

  async #conclude(scope: StepScope): Promise<ReconcileResult> {
    const { record, snapshot, signal } = scope;
    const { agent, tool } = snapshot;
    if (agent === undefined) return { kind: 'done' };
    if (record.state === 'Promoted' && tool === undefined) {
      const missing = ['its session was closed before the object was created; forge it again'];
      return this.#enter({ state: 'Candidate', missing, notBefore: this.#deps.clock.now().toISOString() }, scope);
    }
    if (record.state === 'Promoted' && tool !== undefined) {
      await concludePromoted(this.#deps, record, { agent, tool }, signal);
    }
    if (record.state === 'Rejected') await concludeRejected(this.#deps, record, agent);
    if (record.state === 'Promoted' || record.state === 'Rejected') {
      await this.#deps.store.write({ ...record, concluded: true }, scope.revision);
    }
    await this.#deps.store.removeReviews(scope.promotion);
    return { kind: 'done' };
  }

  /** Frees the pod of a verification that has ended, and what NATS stores for it. */
  async #leave({ record }: StepScope): Promise<void> {
    if (record.state !== 'Verifying') return;
    this.#deps.verifierPods.release(record.pod.uid);
    await this.#deps.store.removeVerification(record.pod.uid);
  }
}

interface StepScope {
  readonly key: string;
  readonly promotion: PromotionKey;
  readonly record: PromotionRecord;
  readonly revision: number;
  readonly snapshot: PromotionSnapshot;
  readonly signal: AbortSignal;
}
