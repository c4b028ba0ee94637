import type { ApprovalRequest, ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { verdictOn } from '../../approvals/verdict.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { Clock } from '../../lib/clock.ts';
import { msUntilNext } from '../../policy/approval-rules.ts';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { INDEX } from '../agent/observe.ts';
import { PROGRESS_CONDITIONS, sameConditions, updateConditions } from '../conditions.ts';
import { type Cache, parseKey } from '../kube/cache.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import { type Stored, type StoredAgent, type StoredPolicy, TYPES } from '../kube/types.ts';
import type { OperatorAudit } from '../ports.ts';
import type { AdmissionAge } from '../tool/admission-age.ts';
import { isInService } from '../tool/observe.ts';
import { shareTool } from '../sharing/share-tool.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from '../tool/tool-index.ts';
import { announcedAgent, type Announcements, dueAnnouncements } from './announcements.ts';
import { GIT_CONDITION, planPullRequest } from './git-condition.ts';
import type { GitStates } from './git-states.ts';
import { type ObservedRequest, planRequest, type RequestStep } from './request-plan.ts';
import { pruneRequest, type StoredRequest } from './stored-decision.ts';

export interface RequestDeps extends ToolCaches {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly audit: OperatorAudit | undefined;
  readonly admissionAge: () => AdmissionAge;
  readonly requestsInGit: Pick<GitStates, 'of'>;
}

/** A timer cannot wait longer than 24 days, and a clock that is set is noticed within a day. */
const MAX_WAIT_MS = 24 * 3_600_000;

/**
 * Decides ApprovalRequests about promotions by the Approvals of their namespace and by the timeout of the policy, and makes Shared objects of
 * approved tools. Announces requests of every type while they wait.
 */
export class RequestReconciler {
  readonly #deps: RequestDeps;
  readonly #statuses: StatusWriter<StoredRequest>;

  constructor(deps: RequestDeps) {
    this.#deps = deps;
    this.#statuses = new StatusWriter<StoredRequest>(deps, {
      type: TYPES.approvalRequests,
      awaited: 'Decided',
      differs,
      patch: (_before, after) => after,
      prune: (stored) => pruneRequest(stored as unknown as Stored<ApprovalRequest>),
    });
  }

  async reconcile(key: string, { signal }: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.requests.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#statuses.forgetWrite(key);
      return { kind: 'done' };
    }
    const request = this.#statuses.latest(cached);
    if (cached.spec.type !== 'PromoteTool') return this.#announceOnly(cached, request, signal);
    const observed = this.#observe(request);
    const planned = planRequest(observed);
    switch (planned.step) {
      case 'keep':
        return { kind: 'requeueAfter', afterMs: planned.forMs };
      case 'remove':
        await this.#deps.client.delete(
          TYPES.approvalRequests,
          { namespace, name },
          { uid: request.metadata.uid },
          signal,
        );
        return { kind: 'done' };
      case 'decide':
        if (planned.share !== undefined)
          await shareTool(
            this.#deps.client,
            planned.share,
            { ...request.spec, contributors: this.#contributors(request) },
            signal,
          );
        await this.#recordDecision(request, planned);
        break;
      case 'wait':
        break;
    }
    await this.#write(cached, request, planned, signal);
    return planned.step === 'wait' ? this.#waitFor(request) : { kind: 'done' };
  }

  /** What decides about calls and rises is elsewhere. */
  async #announceOnly(cached: StoredRequest, request: StoredRequest, signal: AbortSignal): Promise<ReconcileResult> {
    const due = await this.#announce(request);
    if (due !== undefined) {
      const { announcedSteps } = due;
      await this.#statuses.write(cached, request, { ...request.status, announcedSteps }, signal);
    }
    return request.status?.decision === undefined ? this.#waitFor(request) : { kind: 'done' };
  }

  /** The Events are written before the status says so: an operator that ends in between repeats them. */
  async #announce(request: StoredRequest): Promise<Announcements | undefined> {
    const { clock, events } = this.#deps;
    const due = dueAnnouncements(request, clock.now());
    if (due === undefined) return undefined;
    for (const event of due.events) events.record(announcedAgent(request), event);
    await events.written();
    return due;
  }

  #waitFor({ spec }: StoredRequest): ReconcileResult {
    const nextMs = msUntilNext(spec, this.#deps.clock.now());
    return nextMs === undefined ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: Math.min(nextMs, MAX_WAIT_MS) };
  }

  forget(request: StoredRequest): void {
    this.#statuses.forget(request);
  }

  #observe(request: StoredRequest): ObservedRequest {
    const { clock, admissionAge } = this.#deps;
    const { subject, nonce } = request.spec;
    const tools = this.#tools(request);
    const age = admissionAge();
    // Without the admission policies nothing is approved: the request waits.
    const question = {
      subject,
      nonce,
      contributors: this.#contributors(request),
      notBefore: 'since' in age ? age.since : new Date(8.64e15),
    };
    return {
      request,
      now: clock.now(),
      verdict: verdictOn(question, this.#approvals(request)),
      source: tools.find((tool) => tool.facts.tier === 'Agent' && isInService(tool)),
      shared: tools.find((tool) => tool.facts.tier === 'Shared' && tool.metadata.deletionTimestamp === undefined),
      olderTwin: this.#olderTwin(request),
      coolDownMs: this.#coolDownMs(request),
    };
  }

  #coolDownMs({ metadata, spec }: StoredRequest): number {
    const { agents, policies } = this.#deps;
    const [agent] = agents.byIndex(INDEX.uid, spec.agent.uid);
    const policy = agent && policies.get(metadata.namespace, agent.spec.trustPolicyRef.name);
    return promotionRules(policy?.spec ?? {}).coolDownMs;
  }

  #key({ metadata, spec }: StoredRequest): string {
    return inNamespace(metadata.namespace, spec.subject.promotion?.digest ?? '');
  }

  #tools(request: StoredRequest): StoredTool[] {
    return this.#deps.tools.byIndex(TOOL_INDEX.digest, this.#key(request));
  }

  #approvals(request: StoredRequest) {
    return this.#deps.approvals.byIndex(TOOL_INDEX.digest, this.#key(request)).map(({ record }) => record);
  }

  #contributors(request: StoredRequest): string[] {
    return [...new Set(this.#tools(request).flatMap(({ facts }) => facts.contributors))].sort();
  }

  #olderTwin({ metadata, spec }: StoredRequest): string | undefined {
    const key = inNamespace(metadata.namespace, spec.subject.promotion?.digest ?? '');
    return this.#deps.requests
      .byIndex(TOOL_INDEX.digest, key)
      .filter(({ status }) => status?.decision === undefined)
      .filter((other) => other.spec.subject.promotion?.tier === spec.subject.promotion?.tier)
      .map((other) => other.metadata)
      .find((other) => `${other.creationTimestamp} ${other.name}` < `${metadata.creationTimestamp} ${metadata.name}`)
      ?.name;
  }

  async #recordDecision(
    { metadata, spec }: StoredRequest,
    { decision, actor, condition }: RequestStep & { step: 'decide' },
  ) {
    const { tool = '', digest = '', tier = 'Shared' } = spec.subject.promotion ?? {};
    const facts = {
      request: metadata.name,
      namespace: metadata.namespace,
      tool,
      tier,
      decision,
      reason: condition.message,
    };
    await this.#deps.audit?.append(
      metadata.namespace,
      {
        action: 'approval.decided',
        actor,
        evidence: 'observed',
        subject: digest,
        facts,
      },
      `approval.decided/${metadata.uid}`,
    );
  }

  async #write(
    cached: StoredRequest,
    request: StoredRequest,
    planned: RequestStep & { step: 'wait' | 'decide' },
    signal: AbortSignal,
  ): Promise<void> {
    const { generation, uid } = request.metadata;
    const before = request.status?.conditions;
    const inGit = this.#deps.requestsInGit.of(uid);
    const isWaiting = planned.step === 'wait';
    const announcedSteps = (isWaiting ? await this.#announce(request) : undefined)?.announcedSteps;
    // Gateways follow the pull requests of undecided requests only. What is not known yet stays as it is.
    const removable = isWaiting && inGit === undefined ? [] : [GIT_CONDITION, ...PROGRESS_CONDITIONS];
    const findings = [planned.condition, ...(isWaiting ? planPullRequest(inGit ?? []) : [])];
    const status: ApprovalRequestStatus = {
      observedGeneration: generation,
      ...stepsOf(request, announcedSteps),
      ...(planned.step === 'decide' ? { decision: planned.decision } : {}),
      ...(planned.step === 'decide' && planned.by !== undefined ? { decidedBy: planned.by } : {}),
      conditions: updateConditions(before, removable, findings, generation, this.#deps.clock.now()),
    };
    const events = await this.#statuses.write(cached, request, status, signal);
    this.#statuses.recordEvents(request, events ?? []);
  }
}

function stepsOf({ status }: StoredRequest, announced = status?.announcedSteps) {
  return announced === undefined ? {} : { announcedSteps: announced };
}

function differs({ status }: StoredRequest, after: ApprovalRequestStatus): boolean {
  return (
    status?.decision !== after.decision ||
    status?.announcedSteps !== after.announcedSteps ||
    !sameConditions(status?.conditions, after.conditions ?? [])
  );
}
