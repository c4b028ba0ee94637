import { ApiError } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';

const TERMINATING = 'terminating';
/** The controller manager reduces the used amount of a quota some time after the pod is gone. */
const SETTLE_MS = 10_000;
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const QUOTA_ERROR = /\bexceeded quota: /;

/**
 * Pods that are about to release their share of the quotas of their namespace. A terminating pod counts until its grace period has passed,
 * so a full quota rejects the pod that replaces it.
 */
export class QuotaReleases {
  readonly #pods: Cache<Pod>;
  readonly #clock: Clock;
  /** By namespace: when the last pod was deleted, by the monotonic clock. */
  readonly #deletedAt = new Map<string, number>();

  constructor(pods: Cache<Pod>, clock: Clock) {
    this.#pods = pods;
    this.#clock = clock;
    pods.addIndex(TERMINATING, ({ metadata }) =>
      metadata.deletionTimestamp === undefined ? [] : [metadata.namespace ?? ''],
    );
  }

  onDeleted({ metadata }: Pod): void {
    this.#deletedAt.set(metadata.namespace ?? '', this.#clock.monotonic());
  }

  /** Milliseconds after which a pod that a quota rejected may fit; undefined when the pods of the namespace release nothing. */
  retryAfterMs(namespace: string): number | undefined {
    const now = this.#clock.now().getTime();
    const ends = this.#pods
      .byIndex(TERMINATING, namespace)
      .map(endsAt)
      .filter(({ latest }) => now < latest + SETTLE_MS);
    if (ends.length > 0) {
      const next = Math.min(...ends.map(({ earliest }) => earliest)) + MIN_RETRY_MS - now;
      return Math.min(Math.max(next, MIN_RETRY_MS), MAX_RETRY_MS);
    }
    return this.#clock.monotonic() < this.#settledAt(namespace) ? MIN_RETRY_MS : undefined;
  }

  #settledAt(namespace: string): number {
    const deletedAt = this.#deletedAt.get(namespace);
    return deletedAt === undefined ? Number.NEGATIVE_INFINITY : deletedAt + SETTLE_MS;
  }
}

/** The kubelet ends the pod at its deletion timestamp; a quota counts a pod that still exists for one more grace period. */
function endsAt({ metadata }: Pod): { earliest: number; latest: number } {
  const { deletionTimestamp = '', deletionGracePeriodSeconds = 0 } = metadata;
  const earliest = Date.parse(deletionTimestamp) || 0;
  return { earliest, latest: earliest + deletionGracePeriodSeconds * 1_000 };
}

/** The API has no reason of its own for a full quota: the message of the 403 is the only difference. */
export function isQuotaError(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403 && QUOTA_ERROR.test(error.message);
}
