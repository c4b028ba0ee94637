import type { ParsedArtifact } from '../../forge/parse-artifact.ts';
import { differenceFrom, sameJson } from '../../forge/test-runs/compare-json.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { RecordedInput, RerunOutcome } from '../types.ts';
import type { CaseOutputs } from './verification-case.ts';

/** What the pod of an agent reported about a tool, and re-runs show to be otherwise. */
export interface ContradictedReports {
  /** Tests that the pod reported as passed. */
  tests: number;
  /** Uses of which it reported an output, or an input that the tool does not accept. */
  uses: number;
}

/** Failures that the tool itself causes. Those of limits and of the sandbox may come from the load of the node, and contradict nothing. */
const CAUSED_BY_TOOL: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_SANDBOX_EXCEPTION',
  'TEMPER_SANDBOX_SYNTAX',
  'TEMPER_SANDBOX_NO_ENTRY',
  'TEMPER_SANDBOX_OUTPUT_INVALID',
  'TEMPER_TOOL_OUTPUT_INVALID',
  'TEMPER_TOOL_INPUT_INVALID',
  'TEMPER_REPLAY_MISMATCH',
]);

/** Both runs of a re-run have to agree: what varies contradicts nothing. `outcomes` has one entry per recorded use. */
export function contradictedReports(
  { tests }: Pick<ParsedArtifact, 'tests'>,
  outputs: readonly CaseOutputs[],
  recorded: readonly Pick<RecordedInput, 'output'>[],
  outcomes: readonly RerunOutcome[],
): ContradictedReports {
  return {
    tests: tests.filter(({ expectedOutput }, index) => contradictsTest(expectedOutput, outputs[index])).length,
    uses: recorded.filter(({ output }, index) => output !== undefined && isCausedByTool(outcomes[index])).length,
  };
}

function contradictsTest(expected: ParsedArtifact['tests'][number]['expectedOutput'], runs?: CaseOutputs): boolean {
  const [first, second] = runs ?? [];
  if (first === undefined || second === undefined) return false;
  if (!first.ok || !second.ok) return isCausedByTool(first) && isCausedByTool(second);
  return expected !== undefined && sameJson(first.output, second.output) && differs(expected, first.output);
}

function differs(...values: Parameters<typeof differenceFrom>): boolean {
  return differenceFrom(...values) !== undefined;
}

function isCausedByTool(outcome: RerunOutcome | undefined): boolean {
  return outcome?.ok === false && CAUSED_BY_TOOL.has(outcome.code);
}

/** Undefined without one. */
export function describeContradictions({ tests, uses }: ContradictedReports): string | undefined {
  const reports = [
    ...(tests === 0 ? [] : [`${tests} tests that it reported as passed`]),
    ...(uses === 0 ? [] : [`${uses} outputs or inputs that it reported of uses`]),
  ];
  return reports.length === 0 ? undefined : `re-runs contradict the pod of the agent: ${reports.join(', ')}`;
}
