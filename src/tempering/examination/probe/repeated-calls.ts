import { printable } from '../../../lib/printable.ts';
import type { Json } from '../../../lib/json.ts';
import { checkResult, shownValue, unfinishedCheck } from '../check-result.ts';
import type { CheckResult, Disagreement } from '../types.ts';
import type { ProbeCall } from './probe-source.ts';
import type { ProbeResult } from './run-probe.ts';

const MAX_INPUTS = 8;
/** A second attempt, for tools that take long. */
export const FEW_CALLS = 24;
const CALLS = 260;
/** Calls with one input side by side. */
const REPETITIONS = 4;
const MAX_SHOWN = 200;

/** A plan of calls whose results are compared with the first result for the same input. */
export interface RepeatedCalls {
  inputs: readonly Json[];
  calls: ProbeCall[];
}

/** Each input once in an instance of its own, then in one instance for all, side by side and interleaved many times, then once more in instances of their own. */
export function planRepeatedCalls(usable: readonly Json[], count = CALLS): RepeatedCalls {
  const inputs = usable.slice(0, MAX_INPUTS);
  const fresh = inputs.map((_, index): ProbeCall => [0, index, 0]);
  const repeats = inputs.length === 0 ? 0 : Math.ceil(count / inputs.length);
  const shared = Array.from({ length: repeats }, (_, round) =>
    inputs.map((_input, index): ProbeCall => [0, round % 2 === 0 ? index : inputs.length - 1 - index, 1]),
  ).flat();
  const sideBySide = inputs.flatMap((_, index) => Array.from({ length: REPETITIONS }, (): ProbeCall => [0, index, 1]));
  return { inputs, calls: [...fresh, ...sideBySide, ...shared, ...fresh] };
}

/** Results that depend on the calls before. */
export function judgeRepeatedCalls(
  { inputs, calls }: RepeatedCalls,
  probed: { results: readonly ProbeResult[] } | { problem: string },
): CheckResult[] {
  if ('problem' in probed) return [unfinishedCheck('state', probed.problem)];
  const { results } = probed;
  const byInput = new Map<number, Disagreement>();
  for (const [number, result] of results.entries()) {
    const index = calls[number]?.[1] ?? 0;
    const first = results[index];
    if (first === undefined || first.failed || byInput.has(index)) continue;
    if (!result.failed && result.text === first.text) continue;
    byInput.set(index, {
      input: shownValue(inputs[index] ?? null),
      expected: printable(first.text, MAX_SHOWN),
      got: printable(result.text, MAX_SHOWN),
      reason: `the result of call ${number + 1} in one isolate is another one than that of the first call with this input`,
    });
  }
  const mutated = inputs.filter((_, index) => results[index]?.mutated === true);
  return [
    checkResult('state', 'Refuse', calls.length, [...byInput.values()]),
    checkResult(
      'input-mutation',
      'Note',
      inputs.length,
      mutated.map((input) => ({ input: shownValue(input), got: '', reason: 'the tool changes its input object' })),
    ),
  ];
}
