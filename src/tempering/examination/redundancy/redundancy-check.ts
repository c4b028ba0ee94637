import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import type { ParsedArtifact } from '../../../forge/parse-artifact.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { checkResult, shownOutcome, shownValue, skippedCheck } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import type { CheckResult, Disagreement } from '../types.ts';
import { type ChosenTool, chooseTools, type SchemaMatch } from './choose-tools.ts';
import type { ComparedTool } from './compared-tool.ts';
import { areEvidence, isRedundant } from './redundancy-rule.ts';
import { sharedInputs } from './shared-inputs.ts';

export interface ExaminedTool {
  open: ParsedArtifact;
  /** Inputs of its earlier uses. */
  recorded: readonly Json[];
  runs: InputRuns;
}

interface Comparison extends ChosenTool {
  inputs: readonly JsonObject[];
}

/**
 * Looks for a tool in service that gives the same outputs as the examined tool. The examined tool runs first: most other tools need no
 * run, because it contradicts their tests. Ends at the first redundant tool.
 */
export async function redundancyCheck(
  examined: ExaminedTool,
  tools: readonly ComparedTool[],
  { matches, runsOf }: { matches: SchemaMatch; runsOf: (other: ParsedArtifact) => InputRuns },
  op: CallOptions,
): Promise<CheckResult> {
  const comparisons = await comparisonsOf(examined, chooseTools(examined.open, tools, matches), matches);
  const { runs } = examined;
  await runs.run(
    comparisons.flatMap(({ inputs }) => inputs),
    op,
  );
  for (const comparison of comparisons.filter((one) => mayBeRedundant(runs, one))) {
    const { inputs, open } = comparison;
    const other = runsOf(open);
    await other.run(inputs, op);
    const pairs = inputs.map((input) => ({ examined: runs.outcomeOf(input), other: other.outcomeOf(input) }));
    if (isRedundant(pairs)) return checkResult('redundancy', 'Refuse', comparisons.length, [found(comparison, runs)]);
  }
  return comparisons.length === 0
    ? skippedCheck('redundancy', 'Refuse', 'no tool in service accepts the same inputs')
    : checkResult('redundancy', 'Refuse', comparisons.length, []);
}

/**
 * Only tools of which each schema accepts the tests of the other one, and the other one all inputs of the examined tool. A recorded input of
 * the other tool that the examined one refuses is left out: it says what the other one does besides.
 */
async function comparisonsOf(
  { open, recorded }: ExaminedTool,
  chosen: readonly ChosenTool[],
  matches: SchemaMatch,
): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const { tool, open: other } of chosen) {
    const isAccepted = (input: Json): boolean => matches(open.inputSchema, [input]);
    const theirs = { tests: inputsOf(other), recorded: (await tool.recorded()).filter(isAccepted) };
    const inputs = sharedInputs({ tests: inputsOf(open), recorded }, theirs);
    if (matches(open.inputSchema, inputs) && matches(other.inputSchema, inputs)) {
      comparisons.push({ tool, open: other, inputs });
    }
  }
  return comparisons;
}

function inputsOf({ tests }: ParsedArtifact): JsonObject[] {
  return tests.map(({ input }) => input);
}

/** Whether the outputs of the examined tool are evidence and match the tests of the other one. */
function mayBeRedundant(runs: InputRuns, { open, inputs }: Comparison): boolean {
  if (!areEvidence(inputs.map((input) => runs.outcomeOf(input)))) return false;
  return open.tests.every(({ input, expectedOutput }) => {
    const outcome = runs.outcomeOf(input);
    if (expectedOutput === undefined || outcome === undefined) return true;
    return outcome.ok && differenceFrom(expectedOutput, outcome.output) === undefined;
  });
}

function found({ tool, inputs }: Comparison, runs: InputRuns): Disagreement {
  const { name } = tool.artifact;
  const [input = {}] = inputs;
  const outcome = runs.outcomeOf(input);
  return {
    input: shownValue(input),
    got: outcome === undefined ? '' : shownOutcome(outcome),
    reason: `"${name}" at tier ${tool.tier} gives the same outputs for all ${inputs.length} shared inputs; call "${name}" instead, or forge a tool that does something else`,
  };
}
