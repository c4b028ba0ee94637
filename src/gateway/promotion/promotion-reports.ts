import type { PromotionStates } from '../../nats/promotion/promotion-states.ts';
import type { SessionToolPromotion } from '../../gateway-api/user-schemas.ts';
import { describePromotion } from '../../tempering/promotion/promotion-record.ts';
import { type PromotionRules, promotionRules, useGaps } from '../../tempering/promotion/promotion-rules.ts';
import { recordingGaps } from '../../tempering/promotion/recording-rules.ts';
import type { RegisteredTool, ToolStatistics } from '../../tempering/types.ts';
import type { AgentDirectory } from '../deps.ts';

const WITHOUT_EGRESS =
  'it uses fetch, and this release runs no egress proxy, so its calls of fetch fail (TEMPER_EGRESS_UNAVAILABLE)';

/** The state of the promotion of a session tool, its reason and its next step, for users. */
export type ReportPromotion = (
  agentUid: string,
  tool: RegisteredTool,
  statistics: ToolStatistics,
) => Promise<SessionToolPromotion>;

export function createPromotionReports(deps: {
  states: Pick<PromotionStates, 'get'>;
  directory: Pick<AgentDirectory, 'byUid'>;
  /** The release runs an egress proxy. */
  hasEgress: boolean;
}): ReportPromotion {
  return async (agentUid, tool, statistics) => {
    const { record } = await deps.states.get({ agentUid, digest: tool.digest });
    if (record !== undefined) return { state: record.state, since: record.since, ...describePromotion(record) };
    const policy = deps.directory.byUid(agentUid)?.policy;
    if (policy === undefined) {
      return {
        state: 'Candidate',
        reason: 'the TrustPolicy of its agent does not exist',
        next: 'create the TrustPolicy',
      };
    }
    return describeGaps(tool, statistics, { rules: promotionRules(policy.spec), hasEgress: deps.hasEgress });
  };
}

/** What the uses of a tool lack before they request its promotion. */
export function describeGaps(
  tool: RegisteredTool,
  statistics: ToolStatistics,
  { rules, hasEgress }: { rules: PromotionRules; hasEgress: boolean },
): SessionToolPromotion {
  const missing = [...useGaps(tool, statistics, rules), ...recordingGaps(statistics, 'Agent', rules)];
  if (missing.length === 0) {
    return {
      state: 'Candidate',
      reason: 'its reported uses meet the policy',
      next: 'its next successful use requests it',
    };
  }
  const reason = missing.join('; ');
  if (hasEgress || !tool.artifact.requires.apis.includes('fetch')) {
    return { state: 'Candidate', reason, next: 'further successful uses request it' };
  }
  const next = 'set egress.enabled of the chart, or forge a tool that needs no network';
  return { state: 'Candidate', reason: `${reason}; ${WITHOUT_EGRESS}`, next };
}
