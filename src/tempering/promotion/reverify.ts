import type { Json, JsonObject } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { RerunFigures } from './promotion-rules.ts';
import type { RecordedInput, RegisteredTool, Verifier } from '../types.ts';

/** Re-runs the tests and the recorded inputs of a tool. As in every call, each output must match the output schema. */
export async function reverify(
  tool: RegisteredTool,
  recorded: readonly RecordedInput[],
  deps: { verifier: Verifier; schemas: SchemaCompiler },
  op: CallOptions,
): Promise<RerunFigures> {
  const { artifact } = tool;
  const tests = await deps.verifier.tests(artifact, op);
  const inputs = recorded.map(({ input }) => input);
  const outcomes = inputs.length === 0 ? [] : await deps.verifier.outputs(artifact, inputs, op);
  const check = deps.schemas.check(JSON.parse(artifact.outputSchema) as JsonObject);
  const isValid = (output: Json): boolean => check(output).length === 0;
  const successful = recorded.filter((_, index) => {
    const outcome = outcomes[index];
    return outcome?.ok === true && isValid(outcome.output);
  });
  return {
    tests: tests.passed + tests.failed,
    failedTests: tests.failed,
    reruns: recorded.length,
    successes: successful.length,
    distinctInputs: new Set(successful.map(({ root }) => root)).size,
  };
}
