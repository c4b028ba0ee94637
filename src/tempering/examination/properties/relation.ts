import type { Json, JsonObject } from '../../../lib/json.ts';
import { shownOutcome, shownValue } from '../check-result.ts';
import type { InputRuns } from '../input-runs.ts';
import type { InputPlan } from '../inputs/input-plan.ts';
import type { SeededRandom } from '../inputs/seeded-random.ts';
import type { ParsedArtifact } from '../../../forge/parse-artifact.ts';
import type { CheckName, Claim, Disagreement } from '../types.ts';

/** What relations are derived from. */
export interface RelationSources {
  open: ParsedArtifact;
  claims: readonly Claim[];
  plan: InputPlan;
  isValid: (input: Json) => boolean;
  random: SeededRandom;
}

/** A metamorphic relation: what the output for one input says about the output for another one. */
export interface Relation {
  check: CheckName;
  base: JsonObject;
  other: JsonObject;
  reason: string;
  /** Whether a failure with `other` is a disagreement when the tool succeeds with `base`. */
  isTotal: boolean;
  /** The output that `other` must have given that of `base`, or a test of the two outputs. */
  holds: (base: Json, other: Json) => boolean;
}

/** Undefined when the tool gave no output that the relation could be about. */
export function judgeRelation(relation: Relation, runs: InputRuns): { disagreement?: Disagreement } | undefined {
  const { base, other, reason, isTotal } = relation;
  const [first, second] = [runs.outcomeOf(base), runs.outcomeOf(other)];
  if (first?.ok !== true || second === undefined) return undefined;
  if (!second.ok && !isTotal) return undefined;
  if (second.ok && relation.holds(first.output, second.output)) return {};
  return {
    disagreement: {
      input: shownValue(other),
      expected: `the relation to ${shownValue(first.output)}, the output for ${shownValue(base)}`,
      got: shownOutcome(second),
      reason,
    },
  };
}
