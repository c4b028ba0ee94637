import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import { tryDigestOf } from '../../../lib/canonical.ts';
import type { RerunOutcome } from '../../types.ts';
import { isLimitFailure } from '../../verification/verification-case.ts';

/** What two tools gave for one input; undefined when a tool did not run. */
export interface OutcomePair {
  examined: RerunOutcome | undefined;
  other: RerunOutcome | undefined;
}

/** Fewer inputs, or a single output, are no evidence that two tools do the same. */
const MIN_INPUTS = 5;
const MIN_OUTPUTS = 2;

/**
 * Whether two tools do the same: they give the same output for every shared input, for enough inputs and with different outputs among
 * them. An input on which both fail is neither for it nor against it. Pure.
 */
export function isRedundant(pairs: readonly OutcomePair[]): boolean {
  return pairs.every(agrees) && areEvidence(pairs.map(({ examined }) => examined));
}

/** Whether the outcomes of the examined tool alone can be enough; if not, no other tool needs to run. Pure. */
export function areEvidence(outcomes: readonly (RerunOutcome | undefined)[]): boolean {
  const outputs = outcomes.flatMap((outcome) => (outcome?.ok === true ? [tryDigestOf(outcome.output)] : []));
  return outputs.length >= MIN_INPUTS && new Set(outputs).size >= MIN_OUTPUTS;
}

function agrees({ examined, other }: OutcomePair): boolean {
  if (examined === undefined || other === undefined) return false;
  if (examined.ok && other.ok) return differenceFrom(other.output, examined.output) === undefined;
  if (examined.ok || other.ok) return false;
  // A run that ended at a limit says nothing about the output.
  return !isLimitFailure(examined) && !isLimitFailure(other);
}
