/** What usage can be added up by. */
export const USAGE_GROUPS = ['Agent', 'Team', 'Root', 'Model', 'Day'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** `2026-05-04`, in UTC. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}
