import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { Condition } from '../../../src/api/v1alpha1/common.ts';
import { LABELS } from '../../../src/api/cluster.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import type { KubeObject } from '../../../src/kube/informer/store.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { FollowedObjects } from '../../../test/support/api-server/followed-objects.ts';
import { NAMESPACE } from '../../../test/support/operator/approvals-fixture.ts';
import { warmVerifier } from '../../../test/support/promotion/warm-verifier.ts';

type WithConditions = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

const TIMEOUT_MS = 60_000;

/** The objects of a decision, followed by a watch. */
export class DecisionObjects implements AsyncDisposable {
  readonly #followed: Readonly<Record<'tools' | 'approvals' | 'requests', FollowedObjects<WithConditions>>>;
  readonly #pods: FollowedObjects<Pod>;

  constructor(transport: Transport) {
    const follow = (type: (typeof TYPES)[keyof typeof TYPES]) =>
      new FollowedObjects<WithConditions>(transport, { type, namespace: NAMESPACE });
    this.#followed = {
      tools: follow(TYPES.emergentTools),
      approvals: follow(TYPES.approvals),
      requests: follow(TYPES.approvalRequests),
    };
    this.#pods = new FollowedObjects<Pod>(transport, { type: TYPES.pods, labelSelector: `${LABELS.verifierPod}=true` });
  }

  async hasReason(kind: 'tools' | 'approvals' | 'requests', name: string, type: string, reason: string): Promise<void> {
    await this.#followed[kind].until((objects) => {
      const found = objects.find(({ metadata }) => metadata.name === name);
      return found?.status?.conditions?.find((one) => one.type === type && one.reason === reason);
    }, AbortSignal.timeout(TIMEOUT_MS));
  }

  /** The request for tier Shared of the tool with this digest, once the operator has written its status. */
  request(digest: string): Promise<ApprovalRequest> {
    return this.#followed.requests.until((objects) => {
      const requests = objects as unknown as ApprovalRequest[];
      return requests.find(({ spec, status }) => spec.subject.promotion?.digest === digest && status !== undefined);
    }, AbortSignal.timeout(TIMEOUT_MS));
  }

  warmVerifier(): Promise<Pod> {
    return warmVerifier(this.#pods, AbortSignal.timeout(TIMEOUT_MS));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const followed of [...Object.values(this.#followed), this.#pods]) await followed[Symbol.asyncDispose]();
  }
}
