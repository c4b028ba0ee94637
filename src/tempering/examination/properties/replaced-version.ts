import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import type { Json } from '../../../lib/json.ts';
import { checkResult, shownOutcome, shownValue } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import type { CheckResult, Disagreement } from '../types.ts';

/** The inputs for which a tool and the version that it replaces give different outputs. A new version may intend them. */
export function replacedVersion(inputs: readonly Json[], runs: InputRuns, earlier: InputRuns): CheckResult {
  const disagreements = inputs.flatMap((input): Disagreement[] => {
    const [now, before] = [runs.outcomeOf(input), earlier.outcomeOf(input)];
    if (now === undefined || before === undefined || (!now.ok && !before.ok)) return [];
    if (now.ok && before.ok && differenceFrom(before.output, now.output) === undefined) return [];
    const reason = 'the replaced version gives another output';
    return [{ input: shownValue(input), expected: shownOutcome(before), got: shownOutcome(now), reason }];
  });
  return checkResult('replaced-version', 'Note', inputs.length, disagreements);
}
