import type { RecordedInput, ToolStatistics, UnstoredReason } from '../types.ts';
import { MAX_STORED_INPUTS } from '../use/use-record.ts';
import type { PromotionRules } from './promotion-rules.ts';

/** The recorded uses that may carry a promotion to the tier: answers that only a pod reported never carry one to tier Shared. */
export function admissibleInputs(
  recorded: readonly RecordedInput[],
  to: 'Agent' | 'Shared',
  { reportedEvidence }: Pick<PromotionRules, 'reportedEvidence'>,
): RecordedInput[] {
  const mayBeReported = to === 'Agent' && reportedEvidence === 'Allow';
  return recorded.filter(({ answers }) => mayBeReported || answers !== 'reported');
}

/** The requirements that the stored uses do not meet because some of them cannot be repeated or do not count. */
export function recordingGaps(
  { recordedInputs, unrecorded }: ToolStatistics,
  to: 'Agent' | 'Shared',
  rules: PromotionRules,
): string[] {
  const denied = to === 'Agent' && rules.reportedEvidence === 'Allow' ? 0 : recordedInputs.reported;
  const repeatable = recordedInputs.none + recordedInputs.observed + recordedInputs.reported - denied;
  const needed = Math.min(rules.minSuccessfulUses, MAX_STORED_INPUTS);
  const causes = [...deniedCause(denied, to), ...unrecordedCauses(unrecorded)];
  if (repeatable >= needed || causes.length === 0) return [];
  return [`${repeatable} of ${needed} recorded uses that a re-run can repeat: ${causes.join('; ')}`];
}

/** Why recorded uses with reported answers do not count. */
function deniedCause(uses: number, to: 'Agent' | 'Shared'): string[] {
  if (uses === 0) return [];
  const reason =
    to === 'Agent'
      ? 'TrustPolicy spec.promotion.toAgent.reportedEvidence is Deny'
      : 'tier Shared needs observed answers';
  return [`${uses} have answers that only the pod reported, and ${reason}`];
}

const UNSTORED: Record<UnstoredReason, string> = {
  InputTooLarge: 'had an input that is too large to store',
  StorageFull: 'found the storage of the tool or the agent full',
  TooManyCalls: 'made too many calls to record',
  RecordingTooLarge: 'had arguments and answers that are too large to record',
  ContainsSecret: 'had a secret in an argument or an answer, and Temper stores no secrets',
  NotCanonical: 'had text that is not valid Unicode',
};

/** Why uses cannot be repeated, with their numbers. */
export function unrecordedCauses(unrecorded: ToolStatistics['unrecorded']): string[] {
  return Object.entries(UNSTORED).flatMap(([reason, text]) => {
    const uses = unrecorded[reason as UnstoredReason] ?? 0;
    return uses === 0 ? [] : [`${uses} ${text}`];
  });
}
