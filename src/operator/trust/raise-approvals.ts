import { isDeepStrictEqual } from 'node:util';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { type ApprovalRecord, approvalRecord } from '../../approvals/approval-record.ts';
import { type Verdict, verdictOn } from '../../approvals/verdict.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import { FIELD_MANAGER, type StoredAgent, TYPES } from '../kube/types.ts';
import { type Rise, raiseRequest, raiseRequestName, raiseSubject } from './raise-request.ts';

export interface RaiseApprovalsDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
}

/** How the request of a rise was decided. */
export interface RaiseDecision {
  readonly name: string;
  readonly request: TrustRequest;
  readonly verdict: Verdict;
}

/** The Approvals of a namespace are read again after this time, however many agents wait for one. */
const LIST_TTL_MS = 3_000;

/** Creates the requests of rises that an approver decides, and reads the decisions. */
export class RaiseApprovals {
  readonly #deps: RaiseApprovalsDeps;
  readonly #listed = new Map<string, { at: number; approvals: Promise<ApprovalRecord[]> }>();

  constructor(deps: RaiseApprovalsDeps) {
    this.#deps = deps;
  }

  /** Undefined while the agent changes: the next reconcile sees the new spec. Throws ApiError. */
  async decide(rise: Rise, signal: AbortSignal): Promise<RaiseDecision | undefined> {
    const agent = await this.#live(rise.agent, signal);
    if (agent === undefined) return undefined;
    const current = { ...rise, agent };
    const name = raiseRequestName(current);
    const stored = (await this.#read(current, name, signal)) ?? (await this.#create(current, signal));
    const subject = raiseSubject(current);
    // Another object of this name is no request of the operator for this rise.
    if (stored === undefined || !isDeepStrictEqual(stored.spec.subject, subject)) return undefined;
    const approvals = await this.#approvals(agent.metadata.namespace, signal);
    const verdict = verdictOn({ subject, nonce: stored.spec.nonce }, approvals);
    if (verdict.decision !== 'Pending' && stored.status?.decision !== verdict.decision)
      await this.#report(agent.metadata.namespace, name, verdict, signal);
    return { name, request: rise.request, verdict };
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
      return await this.#deps.client.create<StoredRequest>(TYPES.approvalRequests, raiseRequest(rise), signal, options);
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) return undefined;
      throw error;
    }
  }

  async #approvals(namespace: string, signal: AbortSignal): Promise<ApprovalRecord[]> {
    const now = this.#deps.clock.monotonic();
    const known = this.#listed.get(namespace);
    if (known !== undefined && now - known.at < LIST_TTL_MS) return known.approvals;
    const approvals = this.#deps.client
      .list(TYPES.approvals, { namespace }, signal)
      .then((all) => all.map((one) => approvalRecord(one as unknown as Approval)));
    this.#listed.set(namespace, { at: now, approvals });
    approvals.catch(() => this.#listed.delete(namespace));
    return approvals;
  }

  async #report(namespace: string, name: string, verdict: Verdict, signal: AbortSignal): Promise<void> {
    if (verdict.decision === 'Pending') return;
    const status = { decision: verdict.decision, decidedBy: verdict.approval.by };
    await this.#deps.client.patch(TYPES.approvalRequests, { namespace, name }, { status }, signal, {
      subresource: 'status',
    });
  }
}

type StoredRequest = Omit<ApprovalRequest, 'metadata'> & { metadata: StoredAgent['metadata'] };
