import { printable } from '../../lib/printable.ts';
import type { Json } from '../../lib/json.ts';
import { shownArguments } from '../../tools/shown-arguments.ts';
import type { RerunOutcome } from '../types.ts';
import type { CheckName, CheckResult, Consequence, Disagreement } from './types.ts';

const MAX_EXAMPLES = 3;
const MAX_VALUE_CHARACTERS = 400;

/** The JSON text of a value for a report: printable, bounded and without secrets, because it may come from a use. */
export function shownValue(value: Json): string {
  return printable(
    shownArguments(value, (text) => text),
    MAX_VALUE_CHARACTERS,
  );
}

export function shownOutcome(outcome: RerunOutcome): string {
  return outcome.ok
    ? shownValue(outcome.output)
    : printable(`${outcome.code}: ${outcome.message}`, MAX_VALUE_CHARACTERS);
}

export function checkResult(
  check: CheckName,
  consequence: Consequence,
  cases: number,
  disagreements: readonly Disagreement[],
): CheckResult {
  return {
    check,
    consequence,
    cases,
    disagreements: disagreements.length,
    examples: disagreements.slice(0, MAX_EXAMPLES),
  };
}

/** A probe that a tool did not let finish: a tool that hides from a check looks like this, and so may a slow one. */
export function unfinishedCheck(check: CheckName, problem: string): CheckResult {
  const reason = `the tool did not let the check finish: ${printable(problem, 200)}`;
  return checkResult(check, 'Ask', 1, [{ input: '', got: '', reason }]);
}

export function skippedCheck(check: CheckName, consequence: Consequence, reason: string): CheckResult {
  return { ...checkResult(check, consequence, 0, []), skipped: printable(reason, MAX_VALUE_CHARACTERS) };
}

/** With the number of versions of the source that the static gate refused, so that they did not run. */
export function withoutVariants(result: CheckResult, refused: number): CheckResult {
  return refused === 0 ? result : { ...result, refusedVariants: refused };
}
