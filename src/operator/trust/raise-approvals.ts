import { isDeepStrictEqual } from 'node:util';
import type { ApprovalSubject } from '../../api/v1alpha1/common.ts';
import { type Verdict, verdictOn } from '../../approvals/verdict.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import { isConflict } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { Clock } from '../../lib/clock.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import type { StoredApproval, StoredRequest } from '../approval/stored-decision.ts';
import { isOverdue, isTimedOut, POLICY_ACTOR, timedOut } from '../approval/timed-out.ts';
import { updateConditions } from '../conditions.ts';
import type { Cache } from '../kube/cache.ts';
import type { OperatorAudit } from '../ports.ts';
import type { AdmissionAge } from '../tool/admission-age.ts';
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
  readonly status: NonNullable<StoredRequest['status']>;
  readonly actor: string;
  readonly reason: string;
}

const NEXT_RISE = 'the rise is requested again with another version of the Agent or of the TrustPolicy';

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
    const stored = (await this.#read(current, name, signal)) ?? (await this.#create(current, signal));
    const subject = raiseSubject(current);
    // Another object of this name is no request of the operator for this rise.
    if (stored === undefined || !isDeepStrictEqual(stored.spec.subject, subject)) return undefined;
    const decided = (decision: RaiseDecision['decision']) => ({ name, request: rise.request, decision });
    if (isTimedOut(stored)) return decided('TimedOut');
    const verdict = this.#verdict(agent.metadata.namespace, subject, stored.spec.nonce);
    if (verdict.decision === 'Pending') {
      if (!isOverdue(stored, this.#deps.clock.now())) return decided('Pending');
      return (await this.#timeOut(current, stored, signal)) ? decided('TimedOut') : undefined;
    }
    const { by, reason = '', name: approval } = verdict.approval;
    if (stored.status?.decision !== verdict.decision) {
      const status = { decision: verdict.decision, decidedBy: by };
      const isWritten = await this.#decide(current, stored, { status, actor: `user/${by}`, reason }, signal);
      if (!isWritten) return undefined;
    }
    return { ...decided(verdict.decision), ...(verdict.decision === 'Approve' ? { approval } : {}) };
  }

  /** Ends the requests of the agent that no longer ask for a rise: a spec changed, or its requirements are not met any more. */
  async expire({ metadata }: StoredAgent, open: readonly string[], signal: AbortSignal): Promise<void> {
    const { namespace, uid } = metadata;
    const own = this.#deps.requests.byIndex(TOOL_INDEX.agent, inNamespace(namespace, uid));
    const stale = own.filter(({ spec, status }) => spec.type === 'RaiseTrust' && status?.decision === undefined);
    for (const { metadata: request } of stale.filter((one) => !open.includes(one.metadata.name))) {
      await this.#writeStatus(namespace, request.name, { decision: 'Expired' }, signal);
    }
  }

  /** With the whole spec, of which the cache keeps a part. */
  async #live({ metadata }: StoredAgent, signal: AbortSignal): Promise<StoredAgent | undefined> {
    const { namespace, name, uid, generation } = metadata;
    const live = await this.#deps.client.get<StoredAgent>(TYPES.agents, { namespace, name }, signal);
    return live?.metadata.uid === uid && live.metadata.generation === generation ? live : undefined;
  }

  #read({ agent }: Rise, name: string, signal: AbortSignal): Promise<StoredRequest | undefined> {
    const { namespace } = agent.metadata;
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
  async #timeOut(rise: Rise, stored: StoredRequest, signal: AbortSignal): Promise<boolean> {
    const { clock, events } = this.#deps;
    const { generation } = stored.metadata;
    const condition = timedOut(stored.spec, NEXT_RISE);
    const conditions = updateConditions(stored.status?.conditions, [], [condition], generation, clock.now());
    const status = {
      observedGeneration: generation,
      decision: 'Expired',
      decidedBy: POLICY_ACTOR,
      conditions,
    } as const;
    const decided = { status, actor: POLICY_ACTOR, reason: condition.message };
    if (!(await this.#decide(rise, stored, decided, signal))) return false;
    const { namespace, name, uid } = stored.metadata;
    const subject = { apiVersion: stored.apiVersion, kind: stored.kind, metadata: { namespace, name, uid } };
    events.record(subject, { type: 'Normal', reason: condition.reason, message: condition.message });
    return true;
  }

  /** The audit record comes first. False when the request has changed meanwhile. */
  async #decide(
    { agent, request: { level, category } }: Rise,
    { metadata }: StoredRequest,
    { status, actor, reason }: Decided,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client, audit } = this.#deps;
    const { namespace, name, uid, resourceVersion } = metadata;
    const { decision = 'Expired' } = status;
    const facts = { request: name, namespace, agent: agent.metadata.name, level, decision, reason };
    await audit?.append(
      namespace,
      {
        action: 'approval.decided',
        actor,
        evidence: 'observed',
        subject: `agent/${agent.metadata.name}`,
        facts: category === undefined ? facts : { ...facts, category },
      },
      `approval.decided/${uid}/${decision}`,
    );
    try {
      const body = { metadata: { resourceVersion }, status };
      await client.patch(TYPES.approvalRequests, { namespace, name }, body, signal, { subresource: 'status' });
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  async #writeStatus(namespace: string, name: string, status: object, signal: AbortSignal): Promise<void> {
    const options = { subresource: 'status' } as const;
    await this.#deps.client.patch(TYPES.approvalRequests, { namespace, name }, { status }, signal, options);
  }
}
