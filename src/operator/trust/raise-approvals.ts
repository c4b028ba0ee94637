import { isDeepStrictEqual } from 'node:util';
import type { ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import type { ApprovalSubject } from '../../api/v1alpha1/common.ts';
import { type Verdict, verdictOn } from '../../approvals/verdict.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import { isConflict } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { Clock } from '../../lib/clock.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import type { StoredApproval, StoredRequest } from '../approval/stored-decision.ts';
import { isOverdue, isTimedOut, POLICY_ACTOR, SYSTEM_ACTOR, timedOut } from '../approval/timed-out.ts';
import { type ConditionUpdate, updateConditions } from '../conditions.ts';
import type { Cache } from '../kube/cache.ts';
import type { OperatorAudit } from '../ports.ts';
import type { AdmissionAge } from '../tool/admission-age.ts';
import { byline } from '../tool/plan.ts';
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
import { FIELD_MANAGER, type StoredAgent, TYPES } from '../kube/types.ts';
import { type Rise, raiseRequest, raiseRequestName, raiseSubject } from './raise-request.ts';

export interface RaiseApprovalsDeps {
  readonly client: KubeClient;
  readonly approvals: Cache<StoredApproval>;
  readonly requests: Cache<StoredRequest>;
  /** From when on Approvals count. */
  readonly admissionAge: () => AdmissionAge;
  readonly clock: Clock;
  readonly audit: OperatorAudit | undefined;
  readonly events: Pick<EventRecorder, 'record'>;
}

/** How the request of a rise was decided. */
export interface RaiseDecision {
  readonly name: string;
  readonly request: TrustRequest;
  readonly decision: Verdict['decision'] | 'TimedOut';
  /** The name of the Approval that approves it. */
  readonly approval?: string;
}

/** A decision to write: the status of the request, and who decided. */
interface Decided {
  readonly decision: NonNullable<ApprovalRequestStatus['decision']>;
  /** Absent when the operator ends the request. */
  readonly by?: string;
  /** Of the audit record. */
  readonly actor: string;
  readonly reason: string;
  readonly condition: ConditionUpdate<'Decided'>;
}

const NEXT_RISE = 'the rise is requested again with another version of the Agent or of the TrustPolicy';

const NOT_ASKED_ANY_MORE: ConditionUpdate<'Decided'> = {
  type: 'Decided',
  status: 'True',
  reason: 'Expired',
  message:
    'the rise does not apply any more: a spec changed, or its requirements are not met; when it applies again, a new request replaces this one',
};

/** Creates the requests of rises that an approver decides, and reads the decisions. */
export class RaiseApprovals {
  readonly #deps: RaiseApprovalsDeps;

  constructor(deps: RaiseApprovalsDeps) {
    this.#deps = deps;
  }

  /**
   * The status of the request is the decision: each write of it names the version that was read, so an Approval and a timeout never both count.
   * Undefined while the agent or the request changes: the next reconcile sees the new version. Throws ApiError and TEMPER_BUS_*.
   */
  async decide(rise: Rise, signal: AbortSignal): Promise<RaiseDecision | undefined> {
    const agent = await this.#live(rise.agent, signal);
    if (agent === undefined) return undefined;
    const current = { ...rise, agent };
    const name = raiseRequestName(current);
    const subject = raiseSubject(current);
    const found = await this.#read(agent.metadata.namespace, name, signal);
    // Another object of this name is no request of the operator for this rise.
    if (found !== undefined && !isDeepStrictEqual(found.spec.subject, subject)) return undefined;
    const stored = await this.#open(current, found, signal);
    if (stored === undefined) return undefined;
    const decided = (decision: RaiseDecision['decision']) => ({ name, request: rise.request, decision });
    if (isTimedOut(stored)) return decided('TimedOut');
    const denial = denialIn(stored);
    if (denial !== undefined) return decided(denial);
    const verdict = this.#verdict(agent.metadata.namespace, subject, stored.spec.nonce);
    if (verdict.decision === 'Pending') {
      if (!isOverdue(stored, this.#deps.clock.now())) return decided('Pending');
      return (await this.#timeOut(stored, signal)) ? decided('TimedOut') : undefined;
    }
    const isWritten =
      stored.status?.decision === verdict.decision || (await this.#decide(stored, decisionBy(verdict), signal));
    if (!isWritten) return undefined;
    const { name: approval } = verdict.approval;
    return { ...decided(verdict.decision), ...(verdict.decision === 'Approve' ? { approval } : {}) };
  }

  /**
   * Ends the requests of the agent that no longer ask for a rise: a spec changed, or its requirements are not met any more. This is final. A
   * request that another writer changes meanwhile is left to the next reconcile. Throws ApiError and TEMPER_BUS_*.
   */
  async expire({ metadata }: StoredAgent, open: readonly string[], signal: AbortSignal): Promise<void> {
    const { namespace, uid } = metadata;
    const own = this.#deps.requests.byIndex(TOOL_INDEX.agent, inNamespace(namespace, uid));
    const stale = own.filter((request) => request.spec.type === 'RaiseTrust' && isUndecided(request));
    for (const { metadata: request } of stale.filter((one) => !open.includes(one.metadata.name))) {
      // The cache may be behind a decision of the reconcile before.
      const live = await this.#read(namespace, request.name, signal);
      if (live?.metadata.uid !== request.uid || !isUndecided(live)) continue;
      const { message } = NOT_ASKED_ANY_MORE;
      const expired = {
        decision: 'Expired',
        actor: SYSTEM_ACTOR,
        reason: message,
        condition: NOT_ASKED_ANY_MORE,
      } as const;
      await this.#end(live, expired, signal);
    }
  }

  /**
   * The request of the rise: the one that exists, or a new one when there is none or when it expired. A new one has a nonce and times of its
   * own, so no Approval of the expired one counts. Undefined while another writer changes the object.
   */
  async #open(rise: Rise, found: StoredRequest | undefined, signal: AbortSignal): Promise<StoredRequest | undefined> {
    if (found === undefined) return this.#create(rise, signal);
    if (found.status?.decision !== 'Expired' || isTimedOut(found)) return found;
    const { namespace, name, uid, resourceVersion } = found.metadata;
    const preconditions = { uid, resourceVersion };
    const isGone = await this.#deps.client.delete(TYPES.approvalRequests, { namespace, name }, preconditions, signal);
    return isGone ? this.#create(rise, signal) : undefined;
  }

  /** With the whole spec, of which the cache keeps a part. */
  async #live({ metadata }: StoredAgent, signal: AbortSignal): Promise<StoredAgent | undefined> {
    const { namespace, name, uid, generation } = metadata;
    const live = await this.#deps.client.get<StoredAgent>(TYPES.agents, { namespace, name }, signal);
    return live?.metadata.uid === uid && live.metadata.generation === generation ? live : undefined;
  }

  #read(namespace: string, name: string, signal: AbortSignal): Promise<StoredRequest | undefined> {
    return this.#deps.client.get<StoredRequest>(TYPES.approvalRequests, { namespace, name }, signal);
  }

  async #create(rise: Rise, signal: AbortSignal): Promise<StoredRequest | undefined> {
    try {
      const options = { manager: FIELD_MANAGER };
      const object = raiseRequest(rise, this.#deps.clock.now());
      return await this.#deps.client.create<StoredRequest>(TYPES.approvalRequests, object, signal, options);
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) return undefined;
      throw error;
    }
  }

  #verdict(namespace: string, subject: ApprovalSubject, nonce: string): Verdict {
    const age = this.#deps.admissionAge();
    const all = this.#deps.approvals.list().filter(({ metadata }) => metadata.namespace === namespace);
    const records = all.map(({ record }) => record).filter((one) => one.subject.trust !== undefined);
    // Without the admission policies an Approval proves nothing about who wrote it: nothing is approved.
    const notBefore = 'since' in age ? age.since : new Date(8.64e15);
    return verdictOn({ subject, nonce, notBefore }, records);
  }

  /** False when the request has changed meanwhile. */
  async #timeOut(stored: StoredRequest, signal: AbortSignal): Promise<boolean> {
    const condition = timedOut(stored.spec, NEXT_RISE);
    const { message: reason } = condition;
    return this.#end(stored, { decision: 'Expired', by: POLICY_ACTOR, actor: POLICY_ACTOR, reason, condition }, signal);
  }

  /** A decision that no approver made is also an Event of the request. False when the request has changed meanwhile. */
  async #end(stored: StoredRequest, decided: Decided, signal: AbortSignal): Promise<boolean> {
    if (!(await this.#decide(stored, decided, signal))) return false;
    const { namespace, name, uid } = stored.metadata;
    const subject = { apiVersion: stored.apiVersion, kind: stored.kind, metadata: { namespace, name, uid } };
    const { reason, message } = decided.condition;
    this.#deps.events.record(subject, { type: 'Normal', reason, message });
    return true;
  }

  /** The audit record comes first. False when the request has changed meanwhile. */
  async #decide(
    { metadata, spec, status: before }: StoredRequest,
    { decision, by, actor, reason, condition }: Decided,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client, clock, audit } = this.#deps;
    const { namespace, name, uid, resourceVersion, generation } = metadata;
    const { agent = spec.agent.name, level = '', category } = spec.subject.trust ?? {};
    const facts = { request: name, namespace, agent, level, decision, reason };
    await audit?.append(
      namespace,
      {
        action: 'approval.decided',
        actor,
        evidence: 'observed',
        subject: `agent/${agent}`,
        facts: category === undefined ? facts : { ...facts, category },
      },
      `approval.decided/${uid}/${decision}`,
    );
    const status: ApprovalRequestStatus = {
      observedGeneration: generation,
      decision,
      ...(by === undefined ? {} : { decidedBy: by }),
      conditions: updateConditions(before?.conditions, [], [condition], generation, clock.now()),
    };
    try {
      const body = { metadata: { resourceVersion }, status };
      await client.patch(TYPES.approvalRequests, { namespace, name }, body, signal, { subresource: 'status' });
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }
}

function isUndecided({ status }: StoredRequest): boolean {
  return status?.decision === undefined;
}

/** A denial waits for another version of a spec, also when its Approval is deleted. */
function denialIn({ status }: StoredRequest): 'Deny' | 'Revoke' | undefined {
  const { decision } = status ?? {};
  return decision === 'Deny' || decision === 'Revoke' ? decision : undefined;
}

const REASONS = { Approve: 'Approved', Deny: 'Denied', Revoke: 'Revoked' } as const;

function decisionBy({ decision, approval }: Exclude<Verdict, { decision: 'Pending' }>): Decided {
  const { by, reason = '' } = approval;
  const done = REASONS[decision];
  const condition = {
    type: 'Decided',
    status: 'True',
    reason: done,
    message: byline(approval, done.toLowerCase()),
  } as const;
  return { decision, by, actor: `user/${by}`, reason, condition };
}
