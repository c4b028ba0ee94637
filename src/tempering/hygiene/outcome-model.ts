import type { Digest } from '../../lib/canonical.ts';
import type { ToolTask } from './tool-task.ts';

/** A probability and the weight of its evidence, prior included, in tasks. */
export interface Estimate {
  readonly mean: number;
  readonly weight: number;
}

/** How often tasks end badly by themselves, and how often each tool spoils a task that would have ended well. */
export interface OutcomeModel {
  readonly base: Estimate;
  readonly tools: ReadonlyMap<Digest, Estimate & { readonly tasks: number }>;
}

const ITERATIONS = 25;
/** Beta priors, as counts of bad and good tasks. */
const BASE_PRIOR = { bad: 0.5, good: 4.5 };
const TOOL_PRIOR = { bad: 0.3, good: 1.7 };
const INITIAL = { base: 0.1, tool: 0.15 };

/**
 * Fits a noisy-OR model by expectation maximization: a task ends well when neither the task itself nor one of its tools spoils it. So a bad
 * end counts mainly against the tool that other tasks show to be the cause, and hardly against a proven tool beside it.
 */
export function fitOutcomes(tasks: readonly ToolTask[]): OutcomeModel {
  const counts = new Map<Digest, number>();
  for (const { tools } of tasks) for (const tool of tools) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  const bad = tasks.filter(({ endedWell }) => !endedWell);
  let base = INITIAL.base;
  let harm = new Map([...counts.keys()].map((tool) => [tool, INITIAL.tool]));
  const weightOf = (tool: Digest): number => TOOL_PRIOR.bad + TOOL_PRIOR.good + (counts.get(tool) ?? 0);
  const baseWeight = BASE_PRIOR.bad + BASE_PRIOR.good + tasks.length;
  for (let iteration = 0; iteration < ITERATIONS; iteration += 1) {
    const causes = expectedCauses(bad, base, harm);
    base = (BASE_PRIOR.bad + causes.base) / baseWeight;
    harm = new Map(
      [...counts.keys()].map((tool) => [tool, (TOOL_PRIOR.bad + (causes.tools.get(tool) ?? 0)) / weightOf(tool)]),
    );
  }
  const tools = [...harm].map(([tool, mean]) => {
    const estimate = { mean, weight: weightOf(tool), tasks: counts.get(tool) ?? 0 };
    return [tool, estimate] as const;
  });
  return { base: { mean: base, weight: baseWeight }, tools: new Map(tools) };
}

/** How many of the bad ends each cause had a part in, given the current estimates. */
function expectedCauses(
  bad: readonly ToolTask[],
  base: number,
  harm: ReadonlyMap<Digest, number>,
): { base: number; tools: Map<Digest, number> } {
  const tools = new Map<Digest, number>();
  let ofBase = 0;
  for (const task of bad) {
    const harms = task.tools.map((tool) => [tool, harm.get(tool) ?? 0] as const);
    const probability = 1 - harms.reduce((well, [, own]) => well * (1 - own), 1 - base);
    ofBase += base / probability;
    for (const [tool, own] of harms) tools.set(tool, (tools.get(tool) ?? 0) + own / probability);
  }
  return { base: ofBase, tools };
}
