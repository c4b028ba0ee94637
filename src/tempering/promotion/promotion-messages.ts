import type { PromotionSubject } from './promotion-state-store.ts';
import type { RerunFigures } from './promotion-rules.ts';
import type { RegisteredTool } from '../types.ts';

/** Risk and reason shown to the approver, without any text from the tool's author. */
export function approvalSummary(
  subject: PromotionSubject,
  tool: RegisteredTool | undefined,
  questions: readonly string[] = [],
  leaving = '',
): { risk: 'medium' | 'high'; reason: string } {
  const apis = tool?.artifact.requires.apis ?? [];
  const hasExternalAccess = apis.some((api) => api === 'fetch' || api === 'fs.readFile');
  const access = apis.length === 0 ? 'it asks for no host function' : `it asks for ${apis.join(', ')}`;
  const asks =
    questions.length === 0
      ? ''
      : `; its examination leaves questions (${questions.join(', ')}): temper describe tool ${subject.tool} shows the cases`;
  return {
    risk: hasExternalAccess ? 'high' : 'medium',
    reason: `promote ${subject.tool} (${subject.digest}) to tier ${subject.to} in ${subject.namespace}; ${access}${asks}${leaving === '' ? '' : `; ${leaving}`}`,
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

export function testFailureMessage({ failedTests, tests }: RerunFigures): string {
  return `${failedTests} of ${tests} tests failed in a fresh runner`;
}
