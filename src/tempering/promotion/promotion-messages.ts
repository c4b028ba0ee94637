import type { PromotionSubject } from './promotion-state-store.ts';
import type { RerunFigures } from './promotion-rules.ts';
import type { RegisteredTool, ToolStatistics, UnstoredReason } from '../types.ts';

/** Risk and reason shown to the approver, without any text from the tool's author. */
export function approvalSummary(
  subject: PromotionSubject,
  tool: RegisteredTool | undefined,
): { risk: 'medium' | 'high'; reason: string } {
  const apis = tool?.artifact.requires.apis ?? [];
  const hasExternalAccess = apis.some((api) => api === 'fetch' || api === 'fs.readFile');
  const access = apis.length === 0 ? 'it asks for no host function' : `it asks for ${apis.join(', ')}`;
  return {
    risk: hasExternalAccess ? 'high' : 'medium',
    reason: `promote ${subject.tool} (${subject.digest}) to tier ${subject.to} in ${subject.namespace}; ${access}`,
  };
}

export function formatFigures(figures: RerunFigures): string {
  const { successes, reruns, distinctInputs, tests, observedAnswers, reportedAnswers } = figures;
  const answers =
    observedAnswers + reportedAnswers === 0
      ? ''
      : ` (recorded answers: ${observedAnswers} observed, ${reportedAnswers} reported by the pod)`;
  return `${successes} valid re-runs of ${reruns}${answers}, ${distinctInputs} root messages, ${tests} tests`;
}

/** Why recorded uses with reported answers do not count. */
export function deniedCause(uses: number, to: 'Agent' | 'Shared'): string[] {
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

export function testFailureMessage({ failedTests, tests }: RerunFigures): string {
  return `${failedTests} of ${tests} tests failed in a fresh runner`;
}
