import type { Digest } from '../../lib/canonical.ts';
import type { TaskRecord } from '../../policy/trust/evidence.ts';

/** How one task ended, and the forged tools that the agent itself called for it. */
export interface ToolTask {
  /** Epoch milliseconds. */
  readonly endedAt: number;
  readonly endedWell: boolean;
  /** Distinct digests. */
  readonly tools: readonly Digest[];
}

/** Tools of one task that count; further ones are left out. */
export const MAX_TASK_TOOLS = 20;
/** A lower rating says that the task ended badly. */
const MIN_GOOD_RATING = 5;

/**
 * A task ended badly when it failed, when users rate it below 5, or, without a rating, when it needed more than one delivery. Undefined for
 * a message that could not be answered for a cause outside the agent: it says nothing about tools.
 */
export function toToolTask(
  { endedAt, outcome, deliveries, rating }: Pick<TaskRecord, 'endedAt' | 'outcome' | 'deliveries' | 'rating'>,
  tools: readonly Digest[],
): ToolTask | undefined {
  if (outcome === 'excused') return undefined;
  const isAccepted = rating === undefined ? deliveries <= 1 : rating >= MIN_GOOD_RATING;
  return {
    endedAt,
    endedWell: outcome === 'completed' && isAccepted,
    tools: [...new Set(tools)].slice(0, MAX_TASK_TOOLS),
  };
}
