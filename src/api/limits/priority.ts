/** From the last to the first that works when work waits. */
export const PRIORITIES = ['Low', 'Normal', 'High', 'Critical'] as const;
export const DEFAULT_PRIORITY = 'Normal';

export type AgentPriority = (typeof PRIORITIES)[number];

/**
 * The rank of the work of an agent among that of others, 0 for `Low`. Never above the policy, which may have changed after the agent.
 * Never throws: a value that is no priority has the lowest rank.
 */
export function priorityRank(
  { priority = DEFAULT_PRIORITY }: { readonly priority?: AgentPriority | undefined },
  policy: { readonly maxPriority?: AgentPriority | undefined } | undefined,
): number {
  const { maxPriority = DEFAULT_PRIORITY } = policy ?? {};
  return Math.max(0, Math.min(PRIORITIES.indexOf(priority), PRIORITIES.indexOf(maxPriority)));
}
