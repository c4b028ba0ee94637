import type { JudgeVerdict } from '../../forge/types.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
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
import type { OperatorAudit } from '../ports.ts';
import type { ReadAuditHead } from '../sharing/create-request.ts';
import { approvalRequestName } from './approval/approval-request.ts';
import { goneBefore } from './approval/plan-approval.ts';
import { removeUndecidable, requestedPromotions, restorePromotion } from './approval/restore.ts';
import { deleteRequest, requestApproval } from './approval/request-approval.ts';
import { type ConcludeDeps, concludePromoted, concludeRejected } from './conclude.ts';
import { type LeavingTool, toolThatLeaves } from '../hygiene/leaving-tool.ts';
import { startRound } from './examination/start-round.ts';
import { observePromotion, type ObservePromotionDeps, type PromotionSnapshot } from './observe.ts';
import { planPromotion } from './plan.ts';
import { parseQueueKey, queueKeyOf } from './queue-key.ts';
import { ReviewTurns } from './panel/review-turns.ts';
import type { ClusterPromotionStep } from './steps.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { StoredAgent } from '../kube/types.ts';
import { expectedReruns, verificationWork } from './verification.ts';

export interface PromotionReconcilerDeps extends ObservePromotionDeps, ConcludeDeps {
  readonly ids: IdGenerator;
  readonly audit: OperatorAudit | undefined;
  readonly auditHead: ReadAuditHead;
}

/** Recorded inputs of one verification, which a pod and two gateways hold. */
const MAX_INPUT_BYTES = 4 * 1_024 * 1_024;
/** Beyond the time that the pod takes: its start of the work and the way of its outputs. */
const DEADLINE_GRACE_MS = 60_000;
/** Steps after which a promotion waits for a verifier or for models. */
const WAITING_STEPS: ReadonlySet<ClusterPromotionStep['step']> = new Set([
  'wait',
  'askPanel',
  'askTesters',
  'verify',
  'runRound',
]);
/** Results are notified; a notification may be lost. */
const WAIT_MS = 5_000;

/** The only writer of the states of promotions. Each reconcile reads, plans and takes one step; a lost race reads again. */
export class PromotionReconciler {
  readonly #deps: PromotionReconcilerDeps;
  /** Work queue keys of the promotions that wait for a verifier or a panel. */
  readonly #waiting = new Set<string>();
  readonly #turns = new ReviewTurns();

  constructor(deps: PromotionReconcilerDeps) {
    this.#deps = deps;
  }

  /** Starts an attempt for a request, and returns its work queue key; undefined when the request changes nothing. Idempotent. */
  async accept({ agentUid, digest, session }: PromotionRequest, signal: AbortSignal): Promise<string | undefined> {
    const { store, clock, ids, agents } = this.#deps;
    const [agent] = agents.byIndex(INDEX.uid, agentUid);
    const [{ record, revision }, tools] = await Promise.all([
      store.get({ agentUid, digest }),
      store.sessionTools(agentUid, session),
    ]);
    const now = clock.now();
    const tool = tools.find((one) => one.digest === digest);
    if (agent === undefined || !isOpenForRequests(record, now)) return undefined;
    const { namespace, name, uid } = agent.metadata;
    const owner = { agent: { namespace, name, uid }, digest };
    if (record === undefined && (await restorePromotion(this.#deps, { agentUid, digest }, signal)))
      return queueKeyOf(owner);
    if (tool === undefined) return undefined;
    const subject: PromotedSubject = { ...owner, tool: tool.artifact.name, session };
    const stage: PromotionStage = { state: 'Requested', tries: { failed: 0, lastProblem: '' } };
    await store.write({ ...subject, attempt: ids.next('promotion'), since: now.toISOString(), ...stage }, revision);
    return queueKeyOf(subject);
  }

  /** Work queue keys of the promotions that wait for a result. */
  waiting(): readonly string[] {
    return [...this.#waiting];
  }

  /** Finds the promotions that an earlier leader left, or that NATS lost while they waited for a user; calls `requeue` for each. */
  async resume(requeue: (key: string) => void, signal: AbortSignal): Promise<void> {
    const { store, verifierPods } = this.#deps;
    requestedPromotions(this.#deps).forEach(requeue);
    for await (const record of store.list(signal)) {
      if (isSettled(record)) continue;
      if (record.state === 'Verifying' || record.state === 'Examining')
        verifierPods.use(record.pod.uid, record.agent.namespace);
      requeue(queueKeyOf(record));
    }
    if (!signal.aborted) verifierPods.listed();
  }

  async reconcile(key: string, context: ReconcileContext): Promise<ReconcileResult> {
    const promotion = parseQueueKey(key);
    return promotion === undefined ? { kind: 'done' } : this.#reconcile(key, promotion, context);
  }

  async #reconcile(key: string, promotion: PromotionKey, { log, signal }: ReconcileContext): Promise<ReconcileResult> {
    const { record, revision } = await this.#deps.store.get(promotion);
    if (record === undefined) {
      this.#waiting.delete(key);
      this.#turns.end(key);
      this.#deps.verifierPods.forget(key);
      if (!(await restorePromotion(this.#deps, promotion, signal))) return { kind: 'done' };
      log.warn(
        { promotion: key },
        'NATS lost a promotion that waits for a user; it is restored from its ApprovalRequest',
      );
      return { kind: 'requeueAfter', afterMs: 0 };
    }
    const snapshot = await observePromotion(this.#deps, record, signal);
    const step = planPromotion(snapshot.observed);
    if (step.step !== 'verify') this.#deps.verifierPods.forget(key);
    if (WAITING_STEPS.has(step.step) && record.state !== 'AwaitingApproval') this.#waiting.add(key);
    else this.#waiting.delete(key);
    if (step.step === 'enter' || step.step === 'forget' || step.step === 'awaitApproval') this.#turns.end(key);
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
        await removeUndecidable(this.#deps, scope.record, scope.signal);
        return { kind: 'done' };
      case 'wait':
        return { kind: 'requeueAfter', afterMs: step.forMs ?? WAIT_MS };
      case 'forget':
        await this.#leave(scope, undefined);
        await this.#deps.store.remove(scope.promotion);
        return { kind: 'done' };
      case 'enter':
        if (step.examined !== undefined) await this.#recordExamination(scope, step.examined);
        return this.#enter(step.stage, scope);
      case 'runRound':
        return this.#runRound(scope);
      case 'askTesters':
        await this.#askTesters(scope, step.repetition);
        return { kind: 'requeueAfter', afterMs: WAIT_MS };
      case 'awaitApproval':
        return this.#awaitApproval(scope, step.verdicts);
      case 'requestApproval':
        await this.#requestApproval(scope);
        return { kind: 'requeueAfter', afterMs: WAIT_MS };
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
    await this.#write(stage, scope);
    return { kind: 'requeueAfter', afterMs: 0 };
  }

  /** False when another writer was faster. */
  async #write(stage: PromotionStage, scope: StepScope): Promise<boolean> {
    const { agent, tool, digest, session, restored, attempt: previous } = scope.record;
    const subject = { agent, tool, digest, session, ...(restored === undefined ? {} : { restored }) };
    // Each verification is an attempt of its own, so that a late output of the previous pod is none of this one.
    const attempt = stage.state === 'Requested' ? this.#deps.ids.next('promotion') : previous;
    const since = this.#deps.clock.now().toISOString();
    const written = await this.#deps.store.write({ ...subject, attempt, since, ...stage }, scope.revision);
    if (written) await this.#leave(scope, stage.state);
    return written;
  }

  async #runRound(scope: StepScope): Promise<ReconcileResult> {
    const { observed } = scope.snapshot;
    if (!('progress' in observed)) return { kind: 'requeueAfter', afterMs: WAIT_MS };
    const stage = await startRound(this.#deps.store, observed);
    const isLost = stage !== undefined && !(await this.#write(stage, scope));
    // Outputs that came meanwhile have queued the promotion again.
    return { kind: 'requeueAfter', afterMs: isLost ? 0 : WAIT_MS };
  }

  async #awaitApproval(scope: StepScope, verdicts: readonly JudgeVerdict[]): Promise<ReconcileResult> {
    const { record } = scope;
    if (record.state !== 'PanelReview') return { kind: 'requeueAfter', afterMs: WAIT_MS };
    const { figures, facts, questions } = record;
    const request = approvalRequestName(record);
    const nonce = this.#deps.ids.next('nonce');
    const examined = { verdicts: [...verdicts], figures, facts, questions };
    return this.#enter({ state: 'AwaitingApproval', request, nonce, ...examined }, scope);
  }

  /** Before the state, so that no decision is without it. */
  async #recordExamination({ record }: StepScope, facts: JsonObject): Promise<void> {
    const { agent, digest, attempt } = record;
    const entry = { action: 'tool.examined', actor: 'system', evidence: 'observed', subject: digest, facts } as const;
    const owner = { namespace: agent.namespace, agentUid: agent.uid };
    await this.#deps.store.audit(owner, entry, `promotion/${attempt}/tool.examined`);
  }

  /** Pod, then work, then state: what a crash in between leaves is a pod that no promotion names, and the operator deletes it. */
  async #verify(scope: StepScope): Promise<ReconcileResult> {
    const { store, verifierPods, clock } = this.#deps;
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
      const work = verificationWork({ tool, attempt: record.attempt }, recorded, observed.dependencies);
      const deadline = clock.now().getTime() + VERIFICATION_TIMEOUT_MS + DEADLINE_GRACE_MS;
      const stage: PromotionStage = {
        state: 'Verifying',
        tries: observed.record.tries,
        pod: { name, uid: podUid },
        deadline: new Date(deadline).toISOString(),
        recorded: expectedReruns(tool.artifact, recorded),
      };
      const since = clock.now().toISOString();
      const assigned = await store.assign(podUid, 0, work as unknown as Json);
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

  async #askTesters({ record }: StepScope, repetition: number): Promise<void> {
    const { agent, session, digest, attempt } = record;
    await this.#deps.store.requestTesters({ agentUid: agent.uid, session, digest, attempt }, repetition);
  }

  async #askPanel({ key, record }: StepScope, repetition: number): Promise<void> {
    if (record.state !== 'PanelReview' || !this.#turns.begin(key, record.agent)) return;
    const { digest, session, attempt, figures, facts } = record;
    const review = { agentUid: record.agent.uid, session, digest, attempt, facts: { ...figures, ...facts } };
    await this.#deps.store.requestReview(review, repetition);
  }

  async #requestApproval({ record, snapshot, signal }: StepScope): Promise<void> {
    const { agent, tool } = snapshot;
    if (agent === undefined || tool === undefined) return;
    const leaving = await this.#leaving(agent, tool);
    await requestApproval(this.#deps, record, snapshot, leaving, signal);
  }

  /** The tool that the agent loses for the new one, because it has its maximum. */
  async #leaving(agent: StoredAgent, tool: RegisteredTool): Promise<LeavingTool | undefined> {
    const policy = this.#deps.policies.get(agent.metadata.namespace, agent.spec.trustPolicyRef.name);
    return policy && (await toolThatLeaves(this.#deps, { agent, policy, tool }));
  }

  async #conclude(scope: StepScope): Promise<ReconcileResult> {
    const { record, snapshot, signal } = scope;
    const { agent, tool } = snapshot;
    if (agent === undefined) return { kind: 'done' };
    if (record.state === 'Promoted' && tool === undefined) {
      const missing = [`${goneBefore(record, 'the object was created')}; forge it again`];
      return this.#enter({ state: 'Candidate', missing, notBefore: this.#deps.clock.now().toISOString() }, scope);
    }
    if (record.state === 'Promoted' && tool !== undefined) {
      const leaving = await this.#leaving(agent, tool);
      await concludePromoted(this.#deps, record, { agent, tool, leaving }, signal);
    }
    if (record.state === 'Rejected') await concludeRejected(this.#deps, record, agent);
    if (record.state === 'Promoted' || record.state === 'Rejected') {
      await this.#deps.store.write({ ...record, concluded: true }, scope.revision);
    }
    await this.#deps.store.removeReviews(scope.promotion);
    return { kind: 'done' };
  }

  /** Frees the pod of a verification that has ended and what NATS stores for it, and removes a request without a decision ahead. */
  async #leave({ record, signal }: StepScope, next: PromotionStage['state'] | undefined): Promise<void> {
    const isUndecided = next === undefined || next === 'Candidate';
    if (record.state === 'AwaitingApproval' && isUndecided) await deleteRequest(this.#deps.client, record, signal);
    if ((record.state !== 'Verifying' && record.state !== 'Examining') || next === 'Examining') return;
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
