import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { checkOutputs } from '../../forge/gates/output-schema.ts';
import { checkResults, countCases } from '../../forge/gates/tests.ts';
import type { ParsedArtifact } from '../../forge/parse-artifact.ts';
import type { TestCase } from '../../forge/request.ts';
import { differenceFrom, sameJson } from '../../forge/test-runs/compare-json.ts';
import type { TestResult } from '../../forge/types.ts';
import { tryDigestOf } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { RecordedInput, RerunOutcome, TestReport } from '../types.ts';
import type { CaseOutputs, RunOutput } from './verification-case.ts';

/** The outcome of an input: its output, when both runs gave the same one. */
export function outcomeOf(artifact: ToolArtifact, outputs: CaseOutputs): RerunOutcome {
  return combine(outputs, mayVary(artifact));
}

/** The outcome of a recorded use: both runs must give its output, because they got the same from outside. */
export function replayOutcomeOf(
  { output, answers }: Pick<RecordedInput, 'output' | 'answers'>,
  artifact: ToolArtifact,
  outputs: CaseOutputs,
): RerunOutcome {
  const outcome = combine(outputs, answers === 'none' && mayVary(artifact));
  if (!outcome.ok || output === undefined || tryDigestOf(outcome.output) === output) return outcome;
  return { ok: false, code: 'TEMPER_REPLAY_MISMATCH', message: 'the re-run gave another output than the use' };
}

function combine([first, second]: CaseOutputs, mayDiffer: boolean): RerunOutcome {
  if (!first.ok) return first;
  if (!second.ok) return second;
  if (!mayDiffer && !sameJson(first.output, second.output)) {
    return {
      ok: false,
      code: 'TEMPER_FORGE_NONDETERMINISTIC',
      message: 'two runs of one input gave different outputs',
    };
  }
  return { ok: true, output: first.output };
}

/** Compares the outputs of the tests with their expected outputs and with the output schema. `outputs` has one entry per test. */
export function reportTests(
  open: ParsedArtifact,
  outputs: readonly CaseOutputs[],
  schemas: SchemaCompiler,
): TestReport {
  const results = outputs.flatMap((runs, index) => {
    const test = open.tests[index];
    return test === undefined ? [] : runs.map((run, position) => resultOf(test, index, position, run));
  });
  const problems = [...checkResults(open, results), ...checkOutputs(open, results, schemas)];
  const { passed, failed } = countCases(open, results);
  const refused = problems.length > 0 && failed === 0 ? 1 : 0;
  return { passed: passed - refused, failed: failed + refused, problems: problems.map(({ message }) => message) };
}

/** Throws when the sandbox could not run the tool; that is no verdict about the tool. */
export function assertRan(outputs: CaseOutputs): void {
  for (const run of outputs) {
    if (!run.ok && (run.code === 'TEMPER_SANDBOX_UNAVAILABLE' || run.code === 'TEMPER_CANCELLED')) {
      throw new TemperError(run.code, `the tool could not be run again: ${run.message}`, { retry: 'backoff' });
    }
  }
}

function resultOf(test: TestCase, index: number, position: number, run: RunOutput): TestResult {
  const place = { case: index + 1, run: position === 0 ? 1 : 2, milliseconds: 0, heapBytes: 0 } as const;
  if (!run.ok) return { ...place, passed: false, failure: { code: run.code, message: run.message } };
  const passed = test.expectedOutput === undefined || differenceFrom(test.expectedOutput, run.output) === undefined;
  return { ...place, passed, got: run.output };
}

function mayVary({ requires }: ToolArtifact): boolean {
  return requires.apis.some((api) => api === 'clock' || api === 'random' || api === 'fetch');
}
