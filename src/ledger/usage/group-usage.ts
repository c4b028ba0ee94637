import { addAmounts, type DatedUsage, type UsageAmounts } from './usage-entry.ts';
import type { UsageGroup } from './usage-groups.ts';

/** The sum of one agent, team, root message, model or day. */
export interface UsageRow extends UsageAmounts {
  readonly name: string;
  /** Models without a configured price, whose calls are counted at the default price. */
  readonly unpriced: readonly string[];
}

const NAMES: Readonly<Record<UsageGroup, (usage: DatedUsage) => string | undefined>> = {
  Agent: ({ agent }) => agent,
  Team: ({ team }) => team,
  Root: ({ root }) => root,
  Model: ({ model }) => model,
  Day: ({ day }) => day,
};

const NOTHING: UsageAmounts = { calls: 0, inputTokens: 0, outputTokens: 0, costMicros: 0 };

/** One row per group: days in order, others by cost, the highest first. Entries that have no such member are left out. */
export function groupUsage(usage: readonly DatedUsage[], by: UsageGroup): UsageRow[] {
  const groups = Map.groupBy(usage, NAMES[by]);
  const rows = [...groups].flatMap(([name, entries]): UsageRow[] => {
    if (name === undefined) return [];
    const unpriced = new Set(entries.filter((entry) => entry.unpriced === true).map(({ model }) => model));
    return [{ name, ...entries.reduce(addAmounts, NOTHING), unpriced: [...unpriced].sort() }];
  });
  const byName = (a: UsageRow, b: UsageRow): number => (a.name < b.name ? -1 : 1);
  return rows.sort((a, b) => (by === 'Day' ? 0 : b.costMicros - a.costMicros) || byName(a, b));
}
