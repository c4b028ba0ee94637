import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import { shownOutcome, shownValue } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import { isLimitFailure } from '../../verification/verification-case.ts';
import type { Disagreement, TesterResult } from '../types.ts';
import { MIN_CASES, type TesterAnswer } from './ask-tester.ts';

/** Compares the outputs of the tool with those that a tester expects, as the forge compares those of tests. */
export function testerResult(answer: TesterAnswer, runs: InputRuns): TesterResult {
  const { model, dropped, promptDigest } = answer;
  const agreed: Disagreement[] = [];
  const disagreed: Disagreement[] = [];
  for (const { input, expected } of answer.cases) {
    const outcome = runs.outcomeOf(input);
    // A run that ended at a limit may be the fault of the machine, and the examination states it elsewhere.
    if (outcome === undefined || isLimitFailure(outcome)) continue;
    const difference = outcome.ok ? differenceFrom(expected, outcome.output) : 'failure';
    const shown = { input: shownValue(input), expected: shownValue(expected), got: shownOutcome(outcome) };
    if (difference === undefined) agreed.push({ ...shown, reason: 'as expected' });
    else disagreed.push({ ...shown, reason: outcome.ok ? 'the tester expects another output' : 'the tool fails' });
  }
  const cases = agreed.length + disagreed.length;
  const base = {
    model,
    dropped,
    promptDigest,
    cases,
    disagreements: disagreed.length,
    examples: [...disagreed, ...agreed],
  };
  if (cases >= MIN_CASES) return { ...base, verdict: disagreed.length > 0 ? 'Disagrees' : 'Agrees' };
  const problem = answer.problem ?? `only ${cases} usable cases, ${MIN_CASES} are needed`;
  return { ...base, verdict: 'None', problem };
}

/** Testers that the policy names and that must not or cannot test this tool. */
export function noTesterResults(testers: readonly string[], problem: string): TesterResult[] {
  return testers.slice(0, 2).map((model) => ({
    model,
    verdict: 'None',
    cases: 0,
    dropped: 0,
    disagreements: 0,
    examples: [],
    promptDigest: '',
    problem,
  }));
}
