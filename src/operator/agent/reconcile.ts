import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import { reasonOf } from '../conditions.ts';
import { parseKey } from '../kube/cache.ts';
import { pruneAgent } from '../kube/prune.ts';
import { type StoredAgent, TYPES } from '../kube/types.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import type { NamespaceObjects } from '../namespace/prepare.ts';
import { type HasPool, recordChange, recordPlan } from '../pods/pod-metrics.ts';
import { type QuotaReleases, isQuotaError } from '../pods/quota-releases.ts';
import type { StartTimes } from '../pods/start-times.ts';
import { type ApplyResult, apply, rejectionOf } from './apply.ts';
import { ApplyRetries } from './apply-retries.ts';
import { DelayedEvents } from './deferral/delayed-events.ts';
import { FirstStatuses } from './deferral/first-statuses.ts';
import { MessageHandover } from './message-handover.ts';
import { type ObserveDeps, observe } from './observe.ts';
import { NUMBERS_INTERVAL_MS } from './deferral/status-throttle.ts';
import { mayUseHosts } from '../spec-conditions.ts';
import type { ObservedAgent } from './observed.ts';
import { type PodPlan, plan } from './plan.ts';
import type { TrustEvaluation } from '../../policy/trust/evaluate.ts';
import { type AgentToolsDeps, countTransitions, evaluateTools, toolEvents } from '../hygiene/agent-tools.ts';
import type { ToolPlan } from '../hygiene/plan.ts';
import type { RaiseApprovalsDeps } from '../trust/raise-approvals.ts';
import { trustEvents } from '../trust/trust-condition.ts';
import { msUntilEvaluation, TrustEvaluator } from '../trust/trust-evaluator.ts';
import { statusDiffers, statusPatch, summarize } from './summarize.ts';

export interface AgentDeps extends ObserveDeps, RaiseApprovalsDeps, AgentToolsDeps {
  readonly namespaces: NamespaceObjects;
  readonly operatorMetrics: OperatorMetrics | undefined;
  readonly starts: StartTimes;
  readonly hasPool: HasPool;
  readonly quotaReleases: QuotaReleases;
  readonly events: EventRecorder;
}

/** Retry interval while the pod is waiting, e.g. for the gateway address and the CA. */
const WAITING_RETRY_MS = 1_000;
const WAITING_FOR_GATEWAY =
  'waiting for the gateway: its Service has no address, or its certificate does not exist yet; check the Services of the release and the operator log';

/** What one reconcile observed, planned, applied and concluded. */
interface ReconciledAgent {
  /** The agent as the informer cache has it; `observed.agent` may be newer. */
  readonly cached: StoredAgent;
  readonly observed: ObservedAgent;
  readonly planned: PodPlan;
  readonly applied: ApplyResult;
  /** Undefined when the levels stay as they are. */
  readonly evaluation: TrustEvaluation | undefined;
  /** Undefined when its tools stay as they are. */
  readonly tools: ToolPlan | undefined;
}

/** Reconciles one agent in four steps: observe, plan, apply, report. The only writer of Agent status. */
export class AgentReconciler {
  readonly #deps: AgentDeps;
  readonly #statuses: StatusWriter<StoredAgent>;
  readonly #handover: MessageHandover;
  readonly #retries = new ApplyRetries();
  readonly #numbersWrittenAt = new Map<string, number>();
  readonly #delayedEvents: DelayedEvents;
  readonly #firstStatuses: FirstStatuses;
  readonly #trust: TrustEvaluator;

  constructor(deps: AgentDeps) {
    this.#deps = deps;
    this.#delayedEvents = new DelayedEvents(deps.clock);
    this.#firstStatuses = new FirstStatuses(deps.clock);
    this.#trust = new TrustEvaluator(deps);
    this.#handover = new MessageHandover(deps.agentActivity);
    this.#statuses = new StatusWriter<StoredAgent>(deps, {
      type: TYPES.agents,
      awaited: 'Ready',
      differs: ({ metadata, status: before }, after) => statusDiffers(before, after, this.#numbersAreDue(metadata.uid)),
      patch: statusPatch,
      prune: pruneAgent,
    });
  }

  async reconcile(key: string, { log, signal }: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.agents.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#statuses.forgetWrite(key);
      return { kind: 'done' };
    }
    const deferredPod = this.#firstStatuses.podOf(cached.metadata.uid);
    const observed = await observe(this.#deps, this.#statuses.latest(cached), { deferredPod, log, signal });
    const planned = plan(observed);
    recordPlan(this.#deps, observed, planned);
    const applied = await this.#bind(observed, planned, log, signal);
    const evaluation = await this.#trust.evaluate(observed, log, signal);
    const tools = await evaluateTools(this.#deps, observed.agent, observed.tools, log);
    await this.#report({ cached, observed, planned, applied, evaluation, tools }, signal);
    return this.#result(observed, planned, applied, evaluation);
  }

  isExternalStatus(agent: StoredAgent): boolean {
    return this.#statuses.isExternalWrite(agent);
  }

  /** Drops the in-memory state of a deleted agent. */
  forget(agent: StoredAgent): void {
    const { uid } = agent.metadata;
    this.#statuses.forget(agent);
    this.#retries.forget(uid);
    this.#numbersWrittenAt.delete(uid);
    this.#delayedEvents.forget(uid);
    this.#firstStatuses.forget(uid);
    this.#deps.validation.forget(uid);
    this.#deps.crashBackoff.forget(uid);
    this.#deps.starts.cancel(uid);
    this.#deps.trustEvidence?.forget(uid);
  }

  /**
   * Applies the plan. The pod that exists is the one that is bound, so the order of a pod replacement matters:
   *
   *     read the messages in flight → they can only belong to pod A
   *     apply                       → deletes A, creates B: the gateway now rejects A and serves B
   *     redeliver the messages      → NATS gives them to B at once, instead of after the ack wait
   *
   * The status, which confirms B, follows.
   */
  async #bind(observed: ObservedAgent, planned: PodPlan, log: Logger, signal: AbortSignal): Promise<ApplyResult> {
    const scope = { observed, log, signal };
    const inFlight = await this.#handover.readInFlight(planned, scope);
    const applied = await this.#apply(observed, planned, signal);
    await this.#handover.redeliver(inFlight, applied, scope);
    return applied;
  }

  async #apply(observed: ObservedAgent, planned: PodPlan, signal: AbortSignal): Promise<ApplyResult> {
    const { agent, warmPod: warm } = observed;
    const { namespace, uid } = agent.metadata;
    const createsPod = planned.step.kind === 'create' || planned.step.kind === 'claim';
    let isWarmPodBound = false;
    try {
      const notPrepared = createsPod ? await this.#prepare(namespace, signal) : undefined;
      if (notPrepared !== undefined) return notPrepared;
      const isReserved = observed.protection.kind === 'protected';
      const target = { agent, isReserved, reachesHosts: reachesHosts(observed) };
      const applied = await apply(this.#deps.client, target, planned, signal);
      isWarmPodBound = applied.kind === 'bound' && applied.pod.metadata.uid === warm?.metadata.uid;
      this.#retries.clearErrors(uid);
      return applied;
    } catch (error) {
      const errors = this.#retries.countError(uid);
      // Only a failed create or claim is reported: a kept pod stays bound when another call fails.
      const result = createsPod ? (this.#quotaWait(namespace, error) ?? rejectionOf(error, errors)) : undefined;
      if (result === undefined) throw error;
      return result;
    } finally {
      if (warm !== undefined && !isWarmPodBound) this.#deps.pool.release(warm);
    }
  }

  /** Undefined when the namespace is ready for agent pods. */
  async #prepare(namespace: string, signal: AbortSignal): Promise<ApplyResult | undefined> {
    const preparation = await this.#deps.namespaces.prepare(namespace, signal);
    switch (preparation.kind) {
      case 'prepared':
        return undefined;
      case 'waiting':
        return { kind: 'waiting', message: WAITING_FOR_GATEWAY };
      case 'altered':
        return { kind: 'refused', reason: 'PodRejected', message: preparation.message };
    }
  }

  /** A full quota is no rejection while a previous pod still has its share of it. */
  #quotaWait(namespace: string, error: unknown): ApplyResult | undefined {
    if (!isQuotaError(error)) return undefined;
    const retryAfterMs = this.#deps.quotaReleases.retryAfterMs(namespace);
    if (retryAfterMs === undefined) return undefined;
    return { kind: 'waiting', message: waitingForQuota(namespace), retryAfterMs };
  }

  /** Reports the result in the status, the Events and the metrics. */
  async #report(
    { cached, observed, planned, applied, evaluation, tools }: ReconciledAgent,
    signal: AbortSignal,
  ): Promise<void> {
    const { agent, now } = observed;
    const { uid } = agent.metadata;
    const status = summarize(observed, planned, applied, { evaluation, tools });
    const change = { observed, planned, applied, ready: reasonOf(status.conditions, 'Ready') };
    if (this.#firstStatuses.defer(agent, status, applied)) {
      recordChange(this.#deps, change);
      return;
    }
    const transitions = await this.#statuses.write(cached, agent, status, signal);
    if (transitions !== undefined) this.#numbersWrittenAt.set(uid, now.getTime());
    if (transitions !== undefined && evaluation !== undefined)
      this.#statuses.recordEvents(agent, trustEvents(evaluation));
    if (transitions !== undefined && tools !== undefined) {
      this.#statuses.recordEvents(agent, toolEvents(tools));
      countTransitions(this.#deps, tools);
    }
    recordChange(this.#deps, change);
    // No Event for a claim: the pod shows the claim, and one Event per claim would cost more than the warm pool saves.
    const isClaim = applied.kind === 'bound' && applied.origin === 'claimed';
    const immediate = isClaim ? [] : (transitions ?? []);
    this.#statuses.recordEvents(agent, this.#delayedEvents.due(uid, status.conditions ?? [], immediate));
  }

  #numbersAreDue(uid: string): boolean {
    const now = this.#deps.clock.now().getTime();
    return now - (this.#numbersWrittenAt.get(uid) ?? 0) >= NUMBERS_INTERVAL_MS;
  }

  #result(
    { agent, now }: ObservedAgent,
    planned: PodPlan,
    applied: ApplyResult,
    evaluation: TrustEvaluation | undefined,
  ): ReconcileResult {
    const { uid } = agent.metadata;
    if (applied.kind === 'waiting') return { kind: 'requeueAfter', afterMs: applied.retryAfterMs ?? WAITING_RETRY_MS };
    if (applied.kind === 'refused') return { kind: 'requeueAfter', afterMs: this.#retries.countRejection(uid) };
    if (planned.step.kind !== 'none') this.#retries.clearRejections(uid);
    const delays = [
      planned.requeueAfterMs,
      this.#delayedEvents.remainingMs(uid),
      this.#firstStatuses.remainingMs(uid),
      msUntilEvaluation(evaluation, now),
    ].filter((ms) => ms !== undefined);
    return delays.length === 0 ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: Math.min(...delays) };
  }
}

/** The grants and constraints of an accepted agent are within the rules of its policy. */
function reachesHosts({ agent, hasEgress }: ObservedAgent): boolean {
  return hasEgress && mayUseHosts(agent.spec);
}

function waitingForQuota(namespace: string): string {
  return `waiting until a terminating pod of namespace "${namespace}" releases its share of the quota`;
}
