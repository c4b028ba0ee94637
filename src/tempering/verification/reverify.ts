import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { RerunFigures } from '../promotion/promotion-rules.ts';
import { countAnswers } from '../use/use-recording.ts';
import type { RecordedInput, RegisteredTool, RerunOutcome, TestReport, Verifier } from '../types.ts';

/** Re-runs the tests and the recorded inputs of a tool. As in every call, each output must match the output schema. */
export async function reverify(
  tool: RegisteredTool,
  recorded: readonly RecordedInput[],
  deps: { verifier: Verifier; schemas: SchemaCompiler },
  op: CallOptions,
): Promise<RerunFigures> {
  const { artifact } = tool;
  const tests = await deps.verifier.tests(artifact, op);
  const outcomes = recorded.length === 0 ? [] : await deps.verifier.replay(artifact, recorded, op);
  return rerunFigures(artifact, { tests, recorded, outcomes }, deps.schemas);
}

/** The figures of re-runs. `outcomes` has one entry per recorded input; a missing one counts as a failure. */
export function rerunFigures(
  artifact: ToolArtifact,
  reruns: {
    tests: TestReport;
    recorded: readonly Pick<RecordedInput, 'root' | 'answers'>[];
    outcomes: readonly RerunOutcome[];
  },
  schemas: SchemaCompiler,
): RerunFigures {
  const { tests, recorded, outcomes } = reruns;
  const check = schemas.check(JSON.parse(artifact.outputSchema) as JsonObject);
  const successful = recorded.filter((_, index) => {
    const outcome = outcomes[index];
    return outcome?.ok === true && check(outcome.output).length === 0;
  });
  const answers = countAnswers(successful);
  return {
    tests: tests.passed + tests.failed,
    failedTests: tests.failed,
    reruns: recorded.length,
    successes: successful.length,
    distinctInputs: new Set(successful.map(({ root }) => root)).size,
    observedAnswers: answers.observed,
    reportedAnswers: answers.reported,
  };
}
