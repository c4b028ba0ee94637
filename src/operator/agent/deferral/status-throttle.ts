import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../lib/clock.ts';
import { type ConditionUpdate, reasonOf } from '../../conditions.ts';
import type { StoredAgent } from '../../kube/types.ts';
import type { AgentRuntimeState } from '../../ports.ts';

interface QueueLength {
  readonly queue?: number;
}

/** Minimum interval between status writes for changed numbers, in milliseconds. */
export const NUMBERS_INTERVAL_MS = 300_000;
/** Status fields that change all the time. A change of these fields alone is written only every few minutes. */
export const NUMBER_FIELDS = ['summary', 'queue', 'triggers'] as const;

/** Does the queue become empty or non-empty? For an agent without a pod this is written at once, because only the status shows it. */
export function changesQueueState(before: QueueLength | undefined, { queue = 0 }: QueueLength): boolean {
  return (before?.queue ?? 0) > 0 !== queue > 0;
}

/** Decides which agents to requeue when their NATS data changed. Data that the status already contains is not a change. */
export class StatusThrottle {
  readonly #clock: Clock;
  #requeuedAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isChanged(agent: StoredAgent, state: AgentRuntimeState): boolean {
    return this.#hasChangedConditions(agent, state) || this.#hasChangedNumbers(agent, state);
  }

  #hasChangedConditions({ status }: StoredAgent, { model, budget, heartbeat }: AgentRuntimeState): boolean {
    const isChanged = (finding: ConditionUpdate | undefined) => {
      const existing = status?.conditions?.find(({ type }) => type === finding?.type);
      return finding !== undefined && (existing?.reason !== finding.reason || existing.message !== finding.message);
    };
    // ModelDenied takes precedence over the health of the model.
    const isDenied = reasonOf(status?.conditions, 'ModelAvailable') === 'ModelDenied';
    const isResponsiveChanged =
      heartbeat === 'Reported' ? reasonOf(status?.conditions, 'Responsive') !== undefined : isChanged(heartbeat);
    return (!isDenied && isChanged(model)) || isChanged(budget) || isResponsiveChanged;
  }

  #hasChangedNumbers({ metadata, status }: StoredAgent, state: AgentRuntimeState): boolean {
    if (
      NUMBER_FIELDS.every((field) => state[field] === undefined || isDeepStrictEqual(state[field], status?.[field]))
    ) {
      this.#requeuedAt.delete(metadata.uid);
      return false;
    }
    if (status?.pod === undefined && changesQueueState(status, state)) return true;
    const now = this.#clock.monotonic();
    const before = this.#requeuedAt.get(metadata.uid);
    if (before !== undefined && now - before < NUMBERS_INTERVAL_MS) return false;
    this.#requeuedAt.set(metadata.uid, now);
    return true;
  }
}
