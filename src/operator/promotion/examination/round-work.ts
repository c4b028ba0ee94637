import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import type { VerificationWork } from '../../../gateway-api/verification/verification-schemas.ts';
import { type Digest, sha256 } from '../../../lib/canonical.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { MAX_LIMIT_FAILURES } from '../../../tempering/examination/input-runs.ts';
import { withoutTests } from '../verification.ts';

/** Inputs of an examination for the tool, or for a version of it that the examination made. */
export interface ExaminationRun {
  readonly artifact: ToolArtifact;
  readonly inputs: readonly Json[];
}

/** What the pod runs in a round of the examination. No expected output is part of it. */
export function roundWork(
  { artifact, inputs }: ExaminationRun,
  { attempt, round }: { attempt: string; round: number },
  dependencies: ReadonlyMap<string, ToolArtifact>,
): VerificationWork {
  return {
    attempt,
    round,
    artifact: withoutTests(artifact),
    dependencies: [...dependencies].map(([digest, pinned]) => ({ digest, artifact: withoutTests(pinned) })),
    cases: inputs.map((input) => ({ input: input as JsonObject, fixtures: [] })),
    maxLimitFailures: MAX_LIMIT_FAILURES,
  };
}

/** Of what a round runs. The order of members is part of an input, so the JSON text counts. */
export function runDigest({ artifact, cases }: Pick<VerificationWork, 'artifact' | 'cases'>): Digest {
  return sha256(JSON.stringify([artifact, cases.map(({ input }) => input)]));
}
