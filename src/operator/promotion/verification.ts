import { Check } from 'typebox/value';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { VerificationOutputs, type VerificationWork } from '../../gateway-api/verification/verification-schemas.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ExpectedRerun } from '../../tempering/promotion/promotion-record.ts';
import type { RerunFigures } from '../../tempering/promotion/promotion-rules.ts';
import type { RecordedInput, RegisteredTool, RerunOutcome } from '../../tempering/types.ts';
import { assertRan, outcomeOf, replayOutcomeOf, reportTests } from '../../tempering/verification/compare-outputs.ts';
import { type ContradictedReports, contradictedReports } from '../../tempering/verification/contradicted-reports.ts';
import { rerunFigures } from '../../tempering/verification/reverify.ts';
import { parseAccepted } from '../../tempering/verification/run-cases.ts';
import type { VerificationCase } from '../../tempering/verification/verification-case.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';

/** The result of a verification. `unusable`: it says nothing about the tool. */
export type VerificationResult =
  | { kind: 'figures'; figures: RerunFigures; contradicted: ContradictedReports }
  | { kind: 'unusable'; problem: string };

const INPUT_REFUSED: RerunOutcome = {
  ok: false,
  code: 'TEMPER_TOOL_INPUT_INVALID',
  message: 'the schema of the tool refuses the input of the reported use',
};

/** What the pod runs first: tests, then recorded inputs. No expected output is part of it. */
export function verificationWork(
  { tool, attempt }: { tool: Pick<RegisteredTool, 'artifact'>; attempt: string },
  recorded: readonly RecordedInput[],
  dependencies: ReadonlyMap<string, ToolArtifact>,
): VerificationWork {
  const { tests } = parseAccepted(tool.artifact);
  return {
    attempt,
    round: 0,
    artifact: withoutTests(tool.artifact),
    dependencies: [...dependencies].map(([digest, artifact]) => ({ digest, artifact: withoutTests(artifact) })),
    cases: [...tests.map(({ input, fixtures }) => ({ input, fixtures })), ...recorded.map(rerunCase)],
  };
}

/** With the recorded answers and without the output of the use. */
function rerunCase({ input, recording }: RecordedInput): VerificationCase {
  const rerun = { input: input as JsonObject, fixtures: [] };
  return recording === undefined ? rerun : { ...rerun, recording };
}

/** What stays outside the pod. An agent never calls a tool with an input that its schema refuses, so a report of one is false. */
export function expectedReruns(
  { inputSchema }: Pick<ToolArtifact, 'inputSchema'>,
  recorded: readonly RecordedInput[],
): ExpectedRerun[] {
  const check = createSchemaCompiler().check(JSON.parse(inputSchema) as JsonObject);
  return recorded.map(({ root, answers, output, input }) => ({
    root,
    answers,
    ...(output === undefined ? {} : { output }),
    ...(check(input).length === 0 ? {} : { inputRefused: true as const }),
  }));
}

/** Compares what the pod sent with the tests and with `recorded`, the recorded inputs of the work. */
export function compareVerification(
  {
    tool,
    attempt,
    recorded,
  }: { tool: Pick<RegisteredTool, 'artifact'>; attempt: string; recorded: readonly ExpectedRerun[] },
  sent: Json,
): VerificationResult {
  if (!Check(VerificationOutputs, sent)) return { kind: 'unusable', problem: 'the pod sent outputs of another form' };
  if (sent.attempt !== attempt || sent.round !== 0) {
    return { kind: 'unusable', problem: 'the pod sent outputs of another verification' };
  }
  const open = parseAccepted(tool.artifact);
  const expected = open.tests.length + recorded.length;
  if (sent.outputs.length !== expected) {
    return { kind: 'unusable', problem: `the pod sent ${sent.outputs.length} outputs for ${expected} cases` };
  }
  try {
    sent.outputs.forEach(assertRan);
  } catch (error) {
    if (isTemperError(error)) return { kind: 'unusable', problem: printable(error.message, 300) };
    throw error;
  }
  const schemas = createSchemaCompiler();
  const outcomes = sent.outputs.slice(open.tests.length).map((runs, index) => {
    const use = recorded[index];
    if (use === undefined) return outcomeOf(tool.artifact, runs);
    return use.inputRefused === true ? INPUT_REFUSED : replayOutcomeOf(use, tool.artifact, runs);
  });
  const tests = reportTests(open, sent.outputs.slice(0, open.tests.length), schemas);
  const figures = rerunFigures(tool.artifact, { tests, recorded, outcomes }, schemas);
  return { kind: 'figures', figures, contradicted: contradictedReports(open, sent.outputs, recorded, outcomes) };
}

export function withoutTests(artifact: ToolArtifact): ToolArtifact {
  return { ...artifact, tests: [] };
}
