import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { Json } from '../../lib/json.ts';
import { isJsonObject } from '../../lib/json.ts';
import { testFailureMessage } from '../../tempering/promotion/promotion-messages.ts';
import {
  failedVerification,
  type PromotionRules,
  verificationGaps,
} from '../../tempering/promotion/promotion-rules.ts';
import type { ToolVerification } from '../../api/v1alpha1/emergenttool.ts';
import { compareVerification } from '../promotion/verification.ts';
import type { RerunOrder } from './rerun-plan.ts';

export type RerunResult =
  | { readonly kind: 'unusable'; readonly problem: string }
  | {
      readonly kind: 'result';
      readonly verification: Omit<ToolVerification, 'verifiedAt' | 'observedGeneration'>;
      readonly problem: string | undefined;
    };

/** What the outputs of a pod say about the tool. `work` is what the pod was given. Pure. */
export function rerunResult(
  {
    artifact,
    order,
    withInputs,
    rules,
  }: { artifact: ToolArtifact; order: RerunOrder; withInputs: boolean; rules: PromotionRules },
  work: Json,
  sent: Json,
): RerunResult {
  const cases = isJsonObject(work) && Array.isArray(work['cases']) ? work['cases'].length : 0;
  const inputs = Math.max(0, cases - artifact.tests.length);
  // The work has no outputs of uses: a re-run is compared with its other run and with the output schema.
  const recorded = Array.from({ length: inputs }, (_, index) => ({ root: String(index), answers: 'none' as const }));
  const compared = compareVerification({ tool: { artifact }, attempt: order.attempt, recorded }, sent);
  if (compared.kind === 'unusable') return compared;
  const { figures } = compared;
  const { tests, failedTests, reruns, successes } = figures;
  const hasFailed = withInputs ? failedVerification(figures, rules) : failedTests > 0;
  const [gap] = hasFailed ? verificationGaps(figures, rules) : [];
  return {
    kind: 'result',
    verification: { result: hasFailed ? 'Failed' : 'Passed', tests, failedTests, reruns, successes },
    problem: hasFailed ? (gap ?? testFailureMessage(figures)) : undefined,
  };
}
