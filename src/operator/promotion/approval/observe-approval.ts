import { type Verdict, verdictOn } from '../../../approvals/verdict.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { AdmissionAge } from '../../tool/admission-age.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from '../../tool/tool-index.ts';

export interface ObserveApprovalDeps extends Pick<ToolCaches, 'approvals' | 'requests'> {
  readonly admissionAge: () => AdmissionAge;
}

/** The decision about a promotion that waits for a user. */
export interface ObservedDecision {
  readonly verdict: Verdict;
  readonly hasRequest: boolean;
  /** Undecided requests of the agent, of every type. */
  readonly pendingOfAgent: number;
}

/** Reads caches only. Without the admission policies no Approval counts. */
export function observeDecision(
  { approvals, requests, admissionAge }: ObserveApprovalDeps,
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
  const ofAgent = requests.byIndex(TOOL_INDEX.agent, inNamespace(agent.namespace, agent.uid));
  return {
    verdict: verdictOn(
      question,
      about.map((approval) => approval.record),
    ),
    hasRequest: requests.get(agent.namespace, request) !== undefined,
    pendingOfAgent: ofAgent.filter(({ status }) => status?.decision === undefined).length,
  };
}
