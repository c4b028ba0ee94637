import { MAX_USED_TOGETHER } from '../../api/v1alpha1/trust/tools-used-together.ts';
import type { Digest } from '../../lib/canonical.ts';
import { compareText } from '../lexical/compare-text.ts';

/** How one task ended, and the forged tools that it used. */
interface ToolUses {
  readonly endedWell: boolean;
  readonly tools: readonly Digest[];
}

/** Two forged tools that tasks of one agent used together. */
export interface UsedTogether {
  readonly tools: readonly [Digest, Digest];
  /** Of the tasks that used one of the two, the percentage that used both: 1 to 100. */
  readonly percent: number;
}

/** Fewer common tasks are chance. */
const MIN_TASKS = 3;
/** A task that used more tools says nothing about two of them. */
const MAX_TOOLS = 10;

/** The pairs of tools that at least three tasks used together, those with the largest share first. Only tasks that ended well count. Pure; their order does not matter. */
export function usedTogether(tasks: readonly ToolUses[]): UsedTogether[] {
  const used = new Map<Digest, number>();
  const pairs = new Map<string, { tools: readonly [Digest, Digest]; tasks: number }>();
  for (const { tools, endedWell } of tasks) {
    const sorted = [...new Set(tools)].toSorted();
    if (!endedWell || sorted.length > MAX_TOOLS) continue;
    for (const [index, one] of sorted.entries()) {
      used.set(one, (used.get(one) ?? 0) + 1);
      for (const other of sorted.slice(index + 1)) {
        const pair = pairs.get(one + other) ?? { tools: [one, other] as const, tasks: 0 };
        pair.tasks += 1;
        pairs.set(one + other, pair);
      }
    }
  }
  return [...pairs.values()]
    .filter(({ tasks: common }) => common >= MIN_TASKS)
    .map(({ tools, tasks: common }) => {
      const [one, other] = tools;
      const either = (used.get(one) ?? 0) + (used.get(other) ?? 0) - common;
      return { tools, percent: Math.max(1, Math.round((100 * common) / either)) };
    })
    .toSorted((a, b) => b.percent - a.percent || compareText(a.tools.join(' '), b.tools.join(' ')))
    .slice(0, MAX_USED_TOGETHER);
}
