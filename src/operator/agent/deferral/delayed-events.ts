import type { Condition } from '../../../api/v1alpha1/common.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { ConditionEvent } from '../../conditions.ts';

/** How long a reference may be missing before an Event reports it. */
const GRACE_MS = 5_000;

/** States that usually end by themselves: `kubectl apply` creates the objects of a folder one after the other. */
const DELAYED_REASONS: ReadonlySet<string> = new Set(['TrustPolicyNotFound']);

/**
 * Holds back the Events of such states until they have lasted for the grace period; the condition shows them at once. Kept in memory:
 * an operator that restarts within the period does not record the Event.
 */
export class DelayedEvents {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, { reason: string; dueAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The Events to record now, after a reconcile that made these transitions. */
  due(uid: string, conditions: readonly Condition[], transitions: readonly ConditionEvent[]): ConditionEvent[] {
    const now = this.#clock.monotonic();
    for (const { reason } of transitions) {
      if (DELAYED_REASONS.has(reason)) this.#waiting.set(uid, { reason, dueAt: now + GRACE_MS });
    }
    const immediate = transitions.filter(({ reason }) => !DELAYED_REASONS.has(reason));
    const waiting = this.#waiting.get(uid);
    if (waiting === undefined) return immediate;
    const current = conditions.find(({ reason }) => reason === waiting.reason);
    if (current !== undefined && now < waiting.dueAt) return immediate;
    this.#waiting.delete(uid);
    if (current === undefined) return immediate;
    return [...immediate, { type: 'Warning', reason: current.reason, message: current.message }];
  }

  /** Milliseconds until an Event of the agent is due; undefined when none is held back. */
  remainingMs(uid: string): number | undefined {
    const waiting = this.#waiting.get(uid);
    return waiting === undefined ? undefined : Math.max(0, waiting.dueAt - this.#clock.monotonic());
  }

  forget(uid: string): void {
    this.#waiting.delete(uid);
  }
}
