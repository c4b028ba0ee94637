import type { Json } from '../../../lib/json.ts';
import { checkResult, shownOutcome, shownValue } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import { isLimitFailure } from '../../verification/verification-case.ts';
import type { InputPlan } from '../inputs/input-plan.ts';
import type { CheckResult, Disagreement } from '../types.ts';

/** Valid inputs on which the tool fails, or whose output its schema refuses; and inputs whose two runs differ. */
export function generatedInputs(
  { boundaries, neighbours, samples }: InputPlan,
  runs: InputRuns,
  isValidOutput: (output: Json) => boolean,
): CheckResult[] {
  const failed: Disagreement[] = [];
  const varying: Disagreement[] = [];
  const ran = [...boundaries, ...neighbours, ...samples].filter((input) => runs.outcomeOf(input) !== undefined);
  for (const input of ran) {
    const outcome = runs.outcomeOf(input);
    if (outcome === undefined || isLimitFailure(outcome)) continue;
    const shown = { input: shownValue(input), got: shownOutcome(outcome) };
    if (outcome.ok) {
      if (!isValidOutput(outcome.output)) failed.push({ ...shown, reason: 'the output does not match outputSchema' });
    } else if (outcome.code === 'TEMPER_FORGE_NONDETERMINISTIC') {
      varying.push({ ...shown, reason: 'two runs gave different outputs' });
    } else failed.push({ ...shown, reason: 'the tool fails with an input that inputSchema allows' });
  }
  return [
    checkResult('generated-inputs', 'Note', ran.length, failed),
    checkResult('determinism', 'Refuse', ran.length, varying),
  ];
}
