import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { Cache } from '../kube/cache.ts';
import { isRunning, podState } from '../pods/pod-state.ts';
import type { PodTemplate } from '../pods/pod-template.ts';
import type { Pod } from '../kube/types.ts';

/** Warm pods by namespace and sandbox class, with in-memory reservations. */
export class WarmPool {
  readonly #pods: Cache<Pod>;
  readonly #reserved = new Set<string>();
  /** Created pods that the cache does not contain yet. */
  readonly #created = new Map<string, Pod>();

  constructor(pods: Cache<Pod>) {
    this.#pods = pods;
    pods.addIndex(WARM, ({ metadata }) => {
      const className = metadata.labels?.[LABELS.sandboxClass];
      const isWarm = metadata.labels?.[LABELS.agentUid] === undefined && className !== undefined;
      return isWarm ? [`${metadata.namespace}/${className}`] : [];
    });
  }

  /** Reserves a running warm pod of the template, preferably a ready one. No other caller gets it until it is released. */
  reserve(namespace: string, { className, digest }: PodTemplate): Pod | undefined {
    const running = this.#pods
      .byIndex(WARM, `${namespace}/${className}`)
      .filter((pod) => this.#isFree(pod) && templateDigest(pod) === digest && isRunning(pod));
    const found = running.find((pod) => podState(pod).kind === 'ready') ?? running[0];
    if (found?.metadata.uid !== undefined) this.#reserved.add(found.metadata.uid);
    return found;
  }

  /** Releases a pod that was not claimed. A claimed pod stays reserved, because the cache may lag and still show it as warm. */
  release(pod: Pod): void {
    this.#reserved.delete(pod.metadata.uid ?? '');
  }

  /** Warm pods without a reservation, including created pods that the cache does not contain yet. */
  available(namespace: string, className: string): Pod[] {
    const known = this.#pods.byIndex(WARM, `${namespace}/${className}`).filter((pod) => this.#isFree(pod));
    for (const { metadata } of known) this.#created.delete(metadata.uid ?? '');
    const unobserved = [...this.#created.values()].filter(
      ({ metadata }) => metadata.namespace === namespace && metadata.labels?.[LABELS.sandboxClass] === className,
    );
    return [...known, ...unobserved];
  }

  onCreated(pod: Pod): void {
    if (this.#pods.get(pod.metadata.namespace ?? '', pod.metadata.name) === undefined) {
      this.#created.set(pod.metadata.uid ?? '', pod);
    }
  }

  /** Call on a watch event of the pod: the cache contains it from now on. */
  onObserved(uid: string | undefined, isGone: boolean): void {
    this.#created.delete(uid ?? '');
    if (isGone) this.#reserved.delete(uid ?? '');
  }

  #isFree(pod: Pod): boolean {
    return !this.#reserved.has(pod.metadata.uid ?? '');
  }
}

const WARM = 'warm';

export function templateDigest(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[ANNOTATIONS.template];
}
