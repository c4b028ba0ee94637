import { type Verdict, verdictOn } from '../../../approvals/verdict.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { StoredRequest } from '../../approval/stored-decision.ts';
import { isOverdue, isTimedOut } from '../../approval/timed-out.ts';
import type { AdmissionAge } from '../../tool/admission-age.ts';
import type { Clock } from '../../../lib/clock.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from '../../tool/tool-index.ts';

export interface ObserveApprovalDeps extends Pick<ToolCaches, 'approvals' | 'requests'> {
  readonly admissionAge: () => AdmissionAge;
  readonly clock: Clock;
}

/** The decision about a promotion that waits for a user. */
export interface ObservedDecision {
  readonly verdict: Verdict;
  readonly hasRequest: boolean;
  /**
   * Whether the timeout of the policy denies the request: `Due` until the status of the request has this decision, or that of an approver who
   * was faster. The status is written once, so it decides between the two.
   */
  readonly timeout: 'None' | 'Due' | 'Denied';
  /** Undecided requests of the agent, of every type. */
  readonly pendingOfAgent: number;
}

/** Reads caches only. Without the admission policies no Approval counts. */
export function observeDecision(
  { approvals, requests, admissionAge, clock }: ObserveApprovalDeps,
  record: Extract<PromotionRecord, { state: 'AwaitingApproval' }>,
): ObservedDecision {
  const { agent, tool, digest, nonce, request } = record;
  const age = admissionAge();
  const question = {
    subject: { promotion: { tool, digest, tier: 'Agent' as const } },
    nonce,
    contributors: [`agent/${agent.name}`],
    notBefore: 'since' in age ? age.since : new Date(8.64e15),
  };
  const about = approvals.byIndex(TOOL_INDEX.digest, inNamespace(agent.namespace, digest));
  const own = requests.get(agent.namespace, request);
  const ofAgent = requests.byIndex(TOOL_INDEX.agent, inNamespace(agent.namespace, agent.uid));
  return {
    verdict: verdictOn(
      question,
      about.map((approval) => approval.record),
    ),
    hasRequest: own !== undefined,
    timeout: own === undefined ? 'None' : timeoutOf(own, clock.now()),
    pendingOfAgent: ofAgent.filter(({ status }) => status?.decision === undefined).length,
  };
}

function timeoutOf(request: StoredRequest, now: Date): ObservedDecision['timeout'] {
  if (isTimedOut(request)) return 'Denied';
  return isOverdue(request, now) ? 'Due' : 'None';
}
