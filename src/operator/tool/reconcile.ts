import type { KubeClient, KubeReader } from '../../kube/client/kube-client.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { OperatorIdentity } from '../approval/operator-identity.ts';
import type { ConditionUpdate } from '../conditions.ts';
import { parseKey } from '../kube/cache.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import { type Stored, TYPES } from '../kube/types.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { OperatorAudit } from '../ports.ts';
import {
  afterRerun,
  dueTime,
  endsService,
  neededRerun,
  type RerunOrder,
  type RerunProgress,
} from '../reruns/rerun-plan.ts';
import { approvalRules, requestTimes } from '../../policy/approval-rules.ts';
import { revocationOf, revoke } from '../reruns/revocation.ts';
import type { ToolAudits } from '../tool-audits/tool-audits.ts';
import type { ToolReruns } from '../reruns/tool-reruns.ts';
import { isInService, type ReadFacts, ToolObserver, type ToolObserverDeps } from './observe.ts';
import { type Activity, planActivity } from './plan.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import { requestEvidence } from '../sharing/request-evidence.ts';
import { requestObject } from '../sharing/request-object.ts';
import { createRequest, type ReadAuditHead } from '../sharing/create-request.ts';
import type { ReportedTools } from '../sharing/reported-tools.ts';
import { planSharing, requested } from '../sharing/sharing.ts';
import { isSourceLost } from '../withheld/lost-source.ts';
import { pruneTool, type StoredTool } from './stored-tool.ts';
import { toolStatus, toolStatusDiffers, toolStatusPatch } from './summarize.ts';
import { TransitionAudit } from './transition-audit.ts';

export interface ToolDeps extends Omit<ToolObserverDeps, 'latest'> {
  readonly client: KubeClient;
  /** Reads EmergentTools with withheld sources. */
  readonly reader: Pick<KubeReader, 'get'>;
  readonly events: EventRecorder;
  readonly ids: IdGenerator;
  readonly identity: Pick<OperatorIdentity, 'name'>;
  readonly audit: OperatorAudit | undefined;
  readonly auditHead: ReadAuditHead;
  readonly reportedTools: Pick<ReportedTools, 'has'>;
  /** Undefined without NATS or without verifiers. */
  readonly toolAudits: Pick<ToolAudits, 'of'> | undefined;
  readonly promotionStore: Pick<PromotionStore, 'get' | 'statistics'> | undefined;
  /** Undefined without NATS or without verifiers: no Shared tool enters service then. */
  readonly reruns: ToolReruns | undefined;
}

/** The longest timer of a tool; the due time is compared again after it. */
const MAX_DELAY_MS = 6 * 3_600_000;

interface Rerun {
  readonly order: RerunOrder | undefined;
  readonly progress: RerunProgress;
  /** Time to the next scheduled run. */
  readonly dueMs: number | undefined;
}

/** What a reconcile found. */
interface Report {
  readonly activity: Activity;
  readonly sharing: ConditionUpdate<'Shared'> | undefined;
  readonly rerun: Rerun;
  readonly operator: string;
}

interface Sharing {
  readonly condition: ConditionUpdate<'Shared'>;
  readonly retryMs?: number;
}

const AUDIT_RETRY_MS = 10_000;
const NO_VERIFIERS: RerunProgress = {
  kind: 'waiting',
  message:
    'this installation has no verifier pods, and its tests have to run; set verifier.enabled in the values of the chart',
  retryMs: MAX_DELAY_MS,
};

/**
 * Decides which EmergentTools are in service, and requests approvals for tier Shared. Writes nothing of an EmergentTool but its status, so
 * that an object from Git stays as Git has it.
 */
export class ToolReconciler {
  readonly #deps: ToolDeps;
  readonly #statuses: StatusWriter<StoredTool>;
  readonly #audit: TransitionAudit;
  readonly observer: ToolObserver;

  constructor(deps: ToolDeps) {
    this.#deps = deps;
    this.#audit = new TransitionAudit(deps.audit);
    this.#statuses = new StatusWriter<StoredTool>(deps, {
      type: TYPES.emergentTools,
      awaited: 'Active',
      differs: toolStatusDiffers,
      patch: toolStatusPatch,
      // The API server answers with the whole object.
      prune: (stored) => pruneTool(stored as unknown as Stored<EmergentTool>),
    });
    this.observer = new ToolObserver({ ...deps, latest: (tool) => this.#statuses.latest(tool) });
  }

  async reconcile(key: string, { signal }: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.tools.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#statuses.forgetWrite(key);
      await this.#deps.reruns?.release(key);
      return { kind: 'done' };
    }
    const tool = this.#statuses.latest(cached);
    const facts = await this.#read(tool, signal);
    const { operator } = facts;
    const planned = planActivity(this.observer.activity(tool, facts));
    if ('waitMs' in planned) return { kind: 'requeueAfter', afterMs: planned.waitMs };
    const rerun = await this.#rerun(tool, planned, signal);
    const activity = afterRerun(tool, planned, rerun.progress);
    const sharing = await this.#share(tool, activity, signal);
    await this.#report(cached, tool, { activity, sharing: sharing?.condition, rerun, operator }, signal);
    const retryMs = rerun.progress.kind === 'waiting' ? rerun.progress.retryMs : rerun.dueMs;
    return this.#requeue([sharing?.retryMs, retryMs]);
  }

  /** Drops the in-memory state of a deleted tool. */
  forget(tool: StoredTool): void {
    this.#statuses.forget(tool);
  }

  async #read(tool: StoredTool, signal: AbortSignal): Promise<ReadFacts> {
    const { identity, reader, reportedTools } = this.#deps;
    const { facts, metadata } = tool;
    const isEntering = facts.tier === 'Shared' && !isInService(tool);
    const ofNamespace = { namespace: metadata.namespace, digest: facts.digest };
    return {
      operator: await identity.name(signal),
      sourceLost: await isSourceLost(reader, tool, signal),
      wasReported: isEntering && (await reportedTools.has(ofNamespace, signal)),
    };
  }

  async #rerun(tool: StoredTool, planned: Activity, signal: AbortSignal): Promise<Rerun> {
    const { rules, agentUids, ...times } = this.observer.rerun(tool);
    const { reverifyEveryMs } = times;
    const now = this.#deps.clock.now();
    const order = neededRerun(tool, planned, { now, ...times });
    if (order === undefined) {
      const dueAt = planned.status === 'True' ? dueTime(tool, reverifyEveryMs) : undefined;
      const dueMs = dueAt === undefined ? undefined : Math.min(Math.max(dueAt - now.getTime(), 0), MAX_DELAY_MS);
      return { order, progress: { kind: 'none' }, dueMs };
    }
    const progress = (await this.#deps.reruns?.step(tool, { order, rules, agentUids }, signal)) ?? NO_VERIFIERS;
    return { order, progress, dueMs: undefined };
  }

  /** A failed run of a tool in service revokes it, before its status says so. The audit record comes first. */
  async #beforeResult(
    tool: StoredTool,
    { verification, problem }: RerunProgress & { kind: 'ended' },
    { order, operator }: { order: RerunOrder | undefined; operator: string },
    signal: AbortSignal,
  ): Promise<void> {
    if (order === undefined) return;
    await this.#audit.verified(tool, verification, { order, problem });
    if (verification.result === 'Passed' || !endsService(tool, order)) return;
    await revoke(this.#deps.client, revocationOf(tool, operator, problem ?? 'its tests failed'), signal);
  }

  async #share(tool: StoredTool, { status, reason }: Activity, signal: AbortSignal): Promise<Sharing | undefined> {
    if (tool.facts.tier !== 'Agent' || (status !== 'True' && reason !== 'Promoted')) return undefined;
    const observed = this.observer.sharing(tool);
    if (observed === undefined) return undefined;
    const planned = planSharing(observed);
    if (planned.step === 'stay') return planned;
    const { client, ids, promotionStore: store, audit, auditHead } = this.#deps;
    const { agent, policy, agents, holders, requests, now } = observed;
    const request = requestObject({
      tool,
      agent,
      agents,
      nonce: ids.next('nonce'),
      attempt: `${planned.after} ${requests.length}`,
      replaced: this.observer.replaced(tool),
      evidence: store === undefined ? {} : await requestEvidence(store, agent, tool, holders),
      times: requestTimes(approvalRules(policy?.spec.approvals), now),
    });
    await createRequest({ client, audit, auditHead }, request, signal);
    return { condition: requested(request.metadata.name) };
  }

  async #report(
    cached: StoredTool,
    tool: StoredTool,
    { activity, sharing, rerun, operator }: Report,
    signal: AbortSignal,
  ): Promise<void> {
    const { progress, order } = rerun;
    const verification = progress.kind === 'ended' ? progress.verification : undefined;
    if (progress.kind === 'ended') await this.#beforeResult(tool, progress, { order, operator }, signal);
    const audit = this.#deps.toolAudits?.of(tool.metadata.namespace, tool.facts.digest);
    const status = toolStatus(tool, activity, { sharing, verification, audit }, this.#deps.clock.now());
    await this.#audit.before(tool, activity);
    const events = await this.#statuses.write(cached, tool, status, signal);
    this.#statuses.recordEvents(tool, events ?? []);
    await this.#audit.after(tool, activity);
    if (order !== undefined && verification === undefined) return;
    await this.#deps.reruns?.release(`${tool.metadata.namespace}/${tool.metadata.name}`);
  }

  async #requeue(times: readonly (number | undefined)[]): Promise<ReconcileResult> {
    const isAudited = await this.#audit.retry();
    const delays = [...times, isAudited ? undefined : AUDIT_RETRY_MS].filter((ms) => ms !== undefined);
    return delays.length === 0 ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: Math.min(...delays) };
  }
}
