import type { Approval, ApprovalStatus } from '../../api/v1alpha1/approval.ts';
import { verdictOn } from '../../approvals/verdict.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { Clock } from '../../lib/clock.ts';
import { sameConditions, updateConditions } from '../conditions.ts';
import { parseKey } from '../kube/cache.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import { type Stored, TYPES } from '../kube/types.ts';
import type { AdmissionAge } from '../tool/admission-age.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from '../tool/tool-index.ts';
import { type ObservedApproval, planApproval } from './approval-plan.ts';
import { GIT_CONDITION, planGitCondition } from './git-condition.ts';
import type { GitStates } from './git-states.ts';
import { pruneApproval, type StoredApproval } from './stored-decision.ts';
import { isTimedOut } from './timed-out.ts';

export interface ApprovalDeps extends ToolCaches {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly admissionAge: () => AdmissionAge;
  readonly revocationsInGit: Pick<GitStates, 'of'>;
}

/** Shows the author of an Approval about a promotion whether it applies. It decides nothing itself. */
export class ApprovalReconciler {
  readonly #deps: ApprovalDeps;
  readonly #statuses: StatusWriter<StoredApproval>;

  constructor(deps: ApprovalDeps) {
    this.#deps = deps;
    this.#statuses = new StatusWriter<StoredApproval>(deps, {
      type: TYPES.approvals,
      awaited: 'Effective',
      differs: ({ status }, after) => !sameConditions(status?.conditions, after.conditions ?? []),
      patch: (_before, after) => after,
      prune: (stored) => pruneApproval(stored as unknown as Stored<Approval>),
    });
  }

  async reconcile(key: string, { signal }: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.approvals.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#statuses.forgetWrite(key);
      return { kind: 'done' };
    }
    const approval = this.#statuses.latest(cached);
    const observed = this.#observe(approval);
    if (observed === undefined) return { kind: 'done' };
    const effective = planApproval(observed);
    const replacement = this.#replacement(approval, effective);
    if (replacement === 'now') return this.#remove(approval, signal);
    const { generation, uid } = approval.metadata;
    const now = this.#deps.clock.now();
    const inGit = this.#deps.revocationsInGit.of(uid);
    const ofGit = inGit === undefined ? undefined : planGitCondition(inGit);
    const findings = [effective, ...(ofGit === undefined ? [] : [ofGit])];
    // What is not known yet stays as it is.
    const removable = inGit === undefined ? [] : [GIT_CONDITION];
    const status: ApprovalStatus = {
      observedGeneration: generation,
      conditions: updateConditions(approval.status?.conditions, removable, findings, generation, now),
    };
    const events = await this.#statuses.write(cached, approval, status, signal);
    this.#statuses.recordEvents(approval, events ?? []);
    return replacement === undefined ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: replacement };
  }

  /** When an Approval that never counts makes way for one with the same name: when the admission policies check the next one. */
  #replacement({ isFromGit }: StoredApproval, { reason }: { reason: string }): 'now' | number | undefined {
    const age = this.#deps.admissionAge();
    if (!isFromGit || reason !== 'CreatedTooEarly' || !('since' in age)) return undefined;
    const leftMs = age.since.getTime() - this.#deps.clock.now().getTime();
    return leftMs > 0 ? leftMs : 'now';
  }

  async #remove(approval: StoredApproval, signal: AbortSignal): Promise<ReconcileResult> {
    const { namespace, name, uid } = approval.metadata;
    await this.#deps.client.delete(TYPES.approvals, { namespace, name }, { uid }, signal);
    const message =
      'it was created before the admission policies were in force and never counts; it is deleted, and applying its file again creates one that counts';
    this.#statuses.recordEvents(approval, [{ type: 'Warning', reason: 'CreatedTooEarly', message }]);
    return { kind: 'done' };
  }

  forget(approval: StoredApproval): void {
    this.#statuses.forget(approval);
  }

  /** Undefined for a decision about anything but a promotion. */
  #observe({ metadata, record }: StoredApproval): ObservedApproval | undefined {
    const { promotion } = record.subject;
    if (promotion === undefined) return undefined;
    const { tools, approvals, requests, admissionAge } = this.#deps;
    const key = inNamespace(metadata.namespace, promotion.digest);
    const withDigest = tools.byIndex(TOOL_INDEX.digest, key);
    const age = admissionAge();
    const question = {
      subject: record.subject,
      nonce: record.nonce,
      contributors: withDigest.flatMap(({ facts }) => facts.contributors),
      ...('since' in age ? { notBefore: age.since } : {}),
    };
    const ofTools = withDigest
      .filter(({ facts }) => facts.tier === promotion.tier && facts.tool === promotion.tool)
      .map(({ facts }) => facts.requestNonce);
    const ofTier = requests
      .byIndex(TOOL_INDEX.digest, key)
      .filter(({ spec }) => spec.subject.promotion?.tier === promotion.tier);
    const ended = ofTier.find((request) => request.spec.nonce === record.nonce && isTimedOut(request));
    const nonces = [...ofTools, ...ofTier.map(({ spec }) => spec.nonce)].filter((nonce) => nonce !== undefined);
    return {
      approval: record,
      verdict: verdictOn(
        question,
        approvals.byIndex(TOOL_INDEX.digest, key).map((one) => one.record),
      ),
      hasSubject: nonces.includes(record.nonce),
      isTooLate: ended !== undefined && !ofTools.includes(record.nonce),
      otherNonce: nonces.find((nonce) => nonce !== record.nonce),
    };
  }
}
