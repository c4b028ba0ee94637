import type { TestCase } from '../../../forge/request.ts';
import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import { type Json, parseUntrustedJson } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { checkResult, shownValue, unfinishedCheck } from '../check-result.ts';
import type { CheckResult, Disagreement } from '../types.ts';
import type { ProbeCall } from './probe-source.ts';
import type { ProbeResult } from './run-probe.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** No shift first: a test that fails without one is not about time. */
const SHIFTS = [0, 7 * HOUR_MS, 3 * DAY_MS, 45 * DAY_MS, 400 * DAY_MS, 20 * 365 * DAY_MS, -400 * DAY_MS];
const MAX_TESTS = 10;
const MAX_SHOWN = 200;

/** The tests that state an output; it must not depend on the day on which they run. */
export function planShiftedCalls(tests: readonly TestCase[]): {
  tests: TestCase[];
  inputs: Json[];
  calls: ProbeCall[];
} {
  const stated = tests.filter(({ expectedOutput }) => expectedOutput !== undefined).slice(0, MAX_TESTS);
  const calls = SHIFTS.flatMap((shift) => stated.map((_, index): ProbeCall => [0, index, 0, shift]));
  return { tests: stated, inputs: stated.map(({ input }) => input), calls };
}

export function judgeShiftedCalls(
  { tests, calls }: { tests: readonly TestCase[]; calls: readonly ProbeCall[] },
  probed: { results: readonly ProbeResult[] } | { problem: string },
): CheckResult {
  if ('problem' in probed) return unfinishedCheck('clock', probed.problem);
  const failed = new Map<number, Disagreement>();
  for (const [number, result] of probed.results.entries()) {
    const [, index, , shift = 0] = calls[number] ?? [0, 0, 0];
    const test = tests[index];
    const atFirst = probed.results[index];
    if (test === undefined || atFirst === undefined || failed.has(index) || !passes(test, atFirst)) continue;
    if (passes(test, result)) continue;
    failed.set(index, {
      input: shownValue(test.input),
      expected: shownValue(test.expectedOutput ?? null),
      got: printable(result.text, MAX_SHOWN),
      reason: `the test fails when the clock shows ${shift > 0 ? 'a later' : 'an earlier'} time (${shift / HOUR_MS} h)`,
    });
  }
  return checkResult('clock', 'Refuse', calls.length, [...failed.values()]);
}

function passes({ expectedOutput = null }: TestCase, { text, failed }: ProbeResult): boolean {
  if (failed) return false;
  try {
    return differenceFrom(expectedOutput, parseUntrustedJson(text)) === undefined;
  } catch {
    return false;
  }
}
