import { LABELS } from '../../api/cluster.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { Cache } from '../kube/cache.ts';
import { type Pod, TYPES } from '../kube/types.ts';
import { podState } from '../pods/pod-state.ts';
import { readyVerifiers } from './plan.ts';
import type { VerifierTemplate } from './pod-template.ts';

export interface VerifierPodsDeps {
  readonly client: KubeClient;
  readonly pods: Cache<Pod>;
  /** Undefined: this release has no verifiers. */
  readonly template: VerifierTemplate | undefined;
  /** Pods at a time. */
  readonly max: number;
  /** Called when the number of needed pods may have changed. */
  readonly onDemand: () => void;
}

/** A promotion that wants a pod. */
export interface VerifierClaim {
  /** Work queue key of the promotion. */
  readonly key: string;
  readonly namespace: string;
  readonly attempt: string;
}

/**
 * Which verification uses which pod. The label of a pod says that it was assigned, once and for all; this process also knows the pods
 * that it is assigning. Until the promotions are listed, every assigned pod counts as in use.
 */
export class VerifierPods {
  readonly #deps: VerifierPodsDeps;
  /** Namespace of the promotion, by pod UID. */
  readonly #inUse = new Map<string, string>();
  /** Namespace, by work queue key. */
  readonly #waiting = new Map<string, string>();
  /** Created pods that the cache does not contain yet. */
  readonly #created = new Map<string, Pod>();
  #isListed = false;

  constructor(deps: VerifierPodsDeps) {
    this.#deps = deps;
  }

  /** All pods, with the created ones that the cache does not contain yet. */
  pods(): Pod[] {
    const known = this.#deps.pods.list();
    for (const { metadata } of known) this.#created.delete(metadata.uid ?? '');
    return [...known, ...this.#created.values()];
  }

  onCreated(pod: Pod): void {
    this.#created.set(pod.metadata.uid ?? '', pod);
  }

  /** Call on a watch event of the pod. */
  onObserved(uid: string | undefined): void {
    this.#created.delete(uid ?? '');
  }

  get waiting(): readonly string[] {
    return [...this.#waiting.keys()];
  }

  isInUse(podUid: string): boolean {
    return this.isClaimed(podUid) || !this.#isListed;
  }

  isClaimed(podUid: string): boolean {
    return this.#inUse.has(podUid);
  }

  /** A verification uses the pod. */
  use(podUid: string, namespace: string): void {
    this.#inUse.set(podUid, namespace);
  }

  /** All promotions are known, so a pod that none of them uses can be deleted. */
  listed(): void {
    this.#isListed = true;
    this.#deps.onDemand();
  }

  /** The verification of the pod has ended. */
  release(podUid: string): void {
    if (this.#inUse.delete(podUid)) this.#deps.onDemand();
  }

  /** The promotion waits for no pod any more. */
  forget(key: string): void {
    this.#waiting.delete(key);
  }

  /** Assigns a Ready pod to the attempt; undefined when the promotion must wait. Throws ApiError. */
  async claim({ key, namespace, attempt }: VerifierClaim, signal: AbortSignal): Promise<Pod | undefined> {
    const { template, client } = this.#deps;
    if (template === undefined) return undefined;
    this.#waiting.set(key, namespace);
    const isClaimed = (uid: string): boolean => this.isClaimed(uid);
    const ready = this.#isItsTurn(namespace) ? readyVerifiers(this.pods(), { digest: template.digest, isClaimed }) : [];
    for (const pod of ready) {
      const { uid = '' } = pod.metadata;
      this.use(uid, namespace);
      // Before the call: its watch event may come first, and no further pod is needed.
      this.#waiting.delete(key);
      try {
        const claimed = await assign(client, pod, attempt, signal);
        this.#deps.onDemand();
        return claimed;
      } catch (error) {
        this.#inUse.delete(uid);
        this.#waiting.set(key, namespace);
        // The cache lags: the pod was deleted or assigned.
        if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error;
      }
    }
    this.#deps.onDemand();
    return undefined;
  }

  /** Why the pod cannot send outputs any more; undefined while it can. */
  problemOf({ name, uid }: { name: string; uid: string }): string | undefined {
    const pod = this.pods().find(({ metadata }) => metadata.uid === uid);
    if (pod === undefined) return `pod ${name} was deleted`;
    const { kind } = podState(pod);
    return kind === 'terminating' || kind === 'ended' || kind === 'nodeNotReady' ? `pod ${name} is ${kind}` : undefined;
  }

  /** While another namespace waits, one namespace uses at most half of the pods. */
  #isItsTurn(namespace: string): boolean {
    const used = [...this.#inUse.values()];
    if (used.length >= this.#deps.max) return false;
    const own = used.filter((user) => user === namespace).length;
    const othersWait = [...this.#waiting.values()].some((other) => other !== namespace);
    return !othersWait || own < Math.max(1, Math.floor(this.#deps.max / 2));
  }
}

/** Only over the version that was read, so that no two operators assign one pod. */
async function assign(client: KubeClient, pod: Pod, attempt: string, signal: AbortSignal): Promise<Pod> {
  const { namespace = '', name, resourceVersion } = pod.metadata;
  const patch = { metadata: { resourceVersion, labels: { [LABELS.verification]: attempt } } };
  return client.patch<Pod>(TYPES.pods, { namespace, name }, patch, signal);
}
