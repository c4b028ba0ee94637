import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { Cache } from '../cache.ts';
import { isUp, podState } from '../agent/pod-state.ts';
import type { PodTemplate } from '../agent/pod-template.ts';
import type { Pod } from '../kube-types.ts';

/** Warm pods by namespace and class, and who is about to take one. */
export class Pool {
  readonly #pods: Cache<Pod>;
  readonly #reserved = new Set<string>();
  /** Made and not heard of yet. */
  readonly #made = new Map<string, Pod>();

  constructor(pods: Cache<Pod>) {
    this.#pods = pods;
    pods.addIndex(WARM, ({ metadata }) => {
      const className = metadata.labels?.[LABELS.sandboxClass];
      const isWarm = metadata.labels?.[LABELS.agentUid] === undefined && className !== undefined;
      return isWarm ? [`${metadata.namespace}/${className}`] : [];
    });
  }

  /** A warm pod of the template that is up, a ready one first, that nobody else gets until it is released. */
  reserve(namespace: string, { className, digest }: PodTemplate): Pod | undefined {
    const up = this.#pods
      .byIndex(WARM, `${namespace}/${className}`)
      .filter((pod) => this.#isFree(pod) && digestOf(pod) === digest && isUp(pod));
    const found = up.find((pod) => podState(pod).kind === 'ready') ?? up[0];
    if (found?.metadata.uid !== undefined) this.#reserved.add(found.metadata.uid);
    return found;
  }

  /** It was not taken after all. One that was taken stays reserved: the cache may show it as free for a while. */
  release(pod: Pod): void {
    this.#reserved.delete(pod.metadata.uid ?? '');
  }

  /** Warm pods nobody has or is about to have. */
  unclaimed(namespace: string, className: string): Pod[] {
    const known = this.#pods.byIndex(WARM, `${namespace}/${className}`).filter((pod) => this.#isFree(pod));
    for (const { metadata } of known) this.#made.delete(metadata.uid ?? '');
    const unheard = [...this.#made.values()].filter(
      ({ metadata }) => metadata.namespace === namespace && metadata.labels?.[LABELS.sandboxClass] === className,
    );
    return [...known, ...unheard];
  }

  made(pod: Pod): void {
    if (this.#pods.get(pod.metadata.namespace ?? '', pod.metadata.name) === undefined) {
      this.#made.set(pod.metadata.uid ?? '', pod);
    }
  }

  /** News of the pod arrived: the cache knows it from now on. */
  heardOf(uid: string | undefined, isGone: boolean): void {
    this.#made.delete(uid ?? '');
    if (isGone) this.#reserved.delete(uid ?? '');
  }

  #isFree(pod: Pod): boolean {
    return !this.#reserved.has(pod.metadata.uid ?? '');
  }
}

const WARM = 'warm';

export function digestOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[ANNOTATIONS.template];
}
