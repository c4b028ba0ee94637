import { Check } from 'typebox/value';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { VerificationOutputs, type VerificationWork } from '../../gateway-api/verification/verification-schemas.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RerunFigures } from '../../tempering/promotion/promotion-rules.ts';
import type { RecordedInput, RegisteredTool } from '../../tempering/types.ts';
import { assertRan, outcomeOf, reportTests } from '../../tempering/verification/compare-outputs.ts';
import { rerunFigures } from '../../tempering/verification/reverify.ts';
import { parseAccepted } from '../../tempering/verification/run-cases.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';

/** The result of a verification. `unusable`: it says nothing about the tool. */
export type VerificationResult = { kind: 'figures'; figures: RerunFigures } | { kind: 'unusable'; problem: string };

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
    cases: [
      ...tests.map(({ input, fixtures }) => ({ input, fixtures })),
      ...recorded.map(({ input }) => ({ input: input as JsonObject, fixtures: [] })),
    ],
  };
}

/** Compares what the pod sent. `roots` are the root messages of the recorded inputs of the work. */
export function compareVerification(
  { tool, attempt, roots }: { tool: Pick<RegisteredTool, 'artifact'>; attempt: string; roots: readonly string[] },
  sent: Json,
): VerificationResult {
  if (!Check(VerificationOutputs, sent)) return { kind: 'unusable', problem: 'the pod sent outputs of another form' };
  if (sent.attempt !== attempt || sent.round !== 0) {
    return { kind: 'unusable', problem: 'the pod sent outputs of another verification' };
  }
  const open = parseAccepted(tool.artifact);
  const expected = open.tests.length + roots.length;
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
  const outcomes = sent.outputs.slice(open.tests.length).map((runs) => outcomeOf(tool.artifact, runs));
  const tests = reportTests(open, sent.outputs.slice(0, open.tests.length), schemas);
  const recorded = roots.map((root) => ({ root, answers: 'none' as const }));
  return { kind: 'figures', figures: rerunFigures(tool.artifact, { tests, recorded, outcomes }, schemas) };
}

export function withoutTests(artifact: ToolArtifact): ToolArtifact {
  return { ...artifact, tests: [] };
}
