import type { Digest } from '../../lib/canonical.ts';
import { type Estimate, fitOutcomes, type OutcomeModel } from './outcome-model.ts';
import type { ToolTask } from './tool-task.ts';

/** What the outcomes of tasks show about one tool. */
export interface ToolAssessment {
  readonly digest: Digest;
  /** Tasks that called the tool, and how many of them ended badly. */
  readonly tasks: number;
  readonly badTasks: number;
  /** The other tasks of the agent in the same period. */
  readonly otherTasks: number;
  readonly otherBadTasks: number;
  /** How many times likelier the outcomes are when the tool spoils more tasks than the policy allows. */
  readonly evidence: number;
  readonly isHarmful: boolean;
}

/** Fewer tasks decide nothing. */
const MIN_TASKS = 4;
const MIN_OTHER_TASKS = 10;
/** The evidence that removes a tool. */
const MIN_EVIDENCE = 100;
/** The alternatives, as positions between the limit of the policy and 1. */
const ALTERNATIVES = [0.25, 0.45, 0.65, 0.82, 0.96];
/** Standard deviations by which the other causes of a bad end are taken for likelier than they are estimated. */
const MARGIN = { base: 1, tool: 0.5 };
const MAX_HARM = 0.98;

/**
 * Assesses each tool by the tasks that called it: a likelihood ratio between "spoils at most `maxHarmPercent` of its tasks" and a uniform
 * mixture of worse rates, where the base rate and the other tools of a task take their estimates plus a margin. Pure; the order of the
 * tasks does not matter. A limit of 100 assesses none. The error rates are measured, see docs/reference/tempering.md.
 */
export function assessTools(tasks: readonly ToolTask[], maxHarmPercent: number): ToolAssessment[] {
  if (maxHarmPercent >= 100) return [];
  const model = fitOutcomes(tasks);
  const allBad = tasks.filter(({ endedWell }) => !endedWell).length;
  return [...model.tools.keys()].map((digest) => {
    const own = tasks.filter(({ tools }) => tools.includes(digest));
    const badTasks = own.filter(({ endedWell }) => !endedWell).length;
    const evidence = evidenceOf(digest, own, model, maxHarmPercent / 100);
    const otherTasks = tasks.length - own.length;
    const isHarmful = own.length >= MIN_TASKS && otherTasks >= MIN_OTHER_TASKS && evidence >= MIN_EVIDENCE;
    return { digest, tasks: own.length, badTasks, otherTasks, otherBadTasks: allBad - badTasks, evidence, isHarmful };
  });
}

/** `9 of its 9 tasks ended badly, and 4 of 40 others`. */
export function describeAssessment({ tasks, badTasks, otherTasks, otherBadTasks }: ToolAssessment): string {
  return `${badTasks} of its ${tasks} tasks ended badly, and ${otherBadTasks} of ${otherTasks} others`;
}

function evidenceOf(digest: Digest, own: readonly ToolTask[], model: OutcomeModel, limit: number): number {
  const alternatives = ALTERNATIVES.map((position) => limit + (1 - limit) * position);
  const ratios = alternatives.map(() => 1);
  for (const { tools, endedWell } of own) {
    const wellOtherwise = tools
      .filter((tool) => tool !== digest)
      .reduce(
        (well, tool) => well * (1 - upper(model.tools.get(tool), MARGIN.tool)),
        1 - upper(model.base, MARGIN.base),
      );
    alternatives.forEach((harm, index) => {
      const factor = endedWell
        ? (1 - harm) / (1 - limit)
        : (1 - wellOtherwise * (1 - harm)) / (1 - wellOtherwise * (1 - limit));
      ratios[index] = (ratios[index] ?? 1) * factor;
    });
  }
  return ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
}

function upper(estimate: Estimate | undefined, deviations: number): number {
  if (estimate === undefined) return 0;
  const { mean, weight } = estimate;
  return Math.min(MAX_HARM, mean + deviations * Math.sqrt((mean * (1 - mean)) / (weight + 1)));
}
