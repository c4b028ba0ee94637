import type { Json } from '../../../lib/json.ts';
import { checkResult, shownValue } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import type { InputPlan } from '../inputs/input-plan.ts';
import type { CheckResult } from '../types.ts';

/** Fewer different inputs say nothing about a tool whose output has few values. */
const MIN_INPUTS = 12;

/** A tool that gives one output for every input that it accepts does not compute anything. */
export function constantOutput({ bases, neighbours, boundaries, samples }: InputPlan, runs: InputRuns): CheckResult {
  const inputs = [...bases, ...neighbours, ...boundaries, ...samples].filter(
    (input) => runs.outputOf(input) !== undefined,
  );
  const outputs = new Map(inputs.map((input): [string, Json] => [JSON.stringify(runs.outputOf(input)), input]));
  if (inputs.length < MIN_INPUTS || outputs.size !== 1)
    return checkResult('constant-output', 'Refuse', inputs.length, []);
  const [[output, input]] = [...outputs] as [[string, Json]];
  const reason = `${inputs.length} different inputs gave this one output`;
  return checkResult('constant-output', 'Refuse', inputs.length, [
    { input: shownValue(input), got: shownValue(JSON.parse(output)), reason },
  ]);
}
