import { isDeepStrictEqual } from 'node:util';
import type { ApprovalSubject } from '../../api/v1alpha1/common.ts';
import { type Verdict, verdictOn } from '../../approvals/verdict.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import type { StoredApproval, StoredRequest } from '../approval/stored-decision.ts';
import type { Cache } from '../kube/cache.ts';
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
}

/** How the request of a rise was decided. */
export interface RaiseDecision {
  readonly name: string;
  readonly request: TrustRequest;
  readonly verdict: Verdict;
}

/** Creates the requests of rises that an approver decides, and reads the decisions. */
export class RaiseApprovals {
  readonly #deps: RaiseApprovalsDeps;

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
    const verdict = this.#verdict(agent.metadata.namespace, subject, stored.spec.nonce);
    if (verdict.decision !== 'Pending' && stored.status?.decision !== verdict.decision)
      await this.#report(agent.metadata.namespace, name, verdict, signal);
    return { name, request: rise.request, verdict };
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
      return await this.#deps.client.create<StoredRequest>(TYPES.approvalRequests, raiseRequest(rise), signal, options);
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

  async #report(namespace: string, name: string, verdict: Verdict, signal: AbortSignal): Promise<void> {
    if (verdict.decision === 'Pending') return;
    const status = { decision: verdict.decision, decidedBy: verdict.approval.by };
    await this.#writeStatus(namespace, name, status, signal);
  }

  async #writeStatus(namespace: string, name: string, status: object, signal: AbortSignal): Promise<void> {
    const options = { subresource: 'status' } as const;
    await this.#deps.client.patch(TYPES.approvalRequests, { namespace, name }, { status }, signal, options);
  }
}
