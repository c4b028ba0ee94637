import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { MAX_SIZES } from '../../forge/request.ts';
import type { ForgeEvidence, JudgeMaterial, ToolCandidate } from '../../forge/types.ts';
import { messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { normalizeArtifact } from './normalize-artifact.ts';

/** Every test runs twice. A longer list is no evidence of a forge. */
const MAX_RUNS = 2 * MAX_SIZES.tests;

/** What a judge reads about an artifact. Pure, and takes up to a hundred milliseconds: a server calls it outside its serving thread. */
export function presentArtifact(artifact: ToolArtifact): JudgeMaterial {
  try {
    return { ok: true, text: normalizeArtifact(artifact) };
  } catch (error) {
    return { ok: false, problem: printable(messageOf(error), 200) };
  }
}

/** The reported test runs as text for a judge: numbers and booleans only, because the author's side reports them. */
export function presentEvidence({ tests, milliseconds, heapBytes, warnings }: ForgeEvidence): string {
  const runs = tests.slice(0, MAX_RUNS).map((result) => ({
    test: figureOf(result.case),
    run: figureOf(result.run),
    passed: (result.passed as unknown) === true,
    milliseconds: figureOf(result.milliseconds),
  }));
  const measured = {
    milliseconds: figureOf(milliseconds),
    heapBytes: figureOf(heapBytes),
    warnings: warnings.length,
  };
  return JSON.stringify({ runs, measured });
}

/** A canary in the form of the candidate: its limits, and test runs with figures of the same size. */
export function presentCanary(canary: ToolArtifact, { artifact, evidence }: ToolCandidate): string {
  const tests = canary.tests.flatMap((_, index) =>
    ([1, 2] as const).map((run) => ({
      case: index + 1,
      run,
      passed: true,
      milliseconds: evidence.tests[index]?.milliseconds ?? evidence.milliseconds,
      heapBytes: 0,
    })),
  );
  const text = normalizeArtifact({ ...canary, limits: artifact.limits });
  return `${text}\n${presentEvidence({ ...evidence, tests, warnings: [] })}`;
}

/** Anything but a number could be a text for the judge. */
function figureOf(value: unknown): number {
  return typeof value === 'number' ? Math.round(value) : 0;
}
