import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { PromotionRequests } from '../../nats/promotion/promotion-requests.ts';
import type { PromotionStates } from '../../nats/promotion/promotion-states.ts';
import type { AgentQuota } from '../../nats/residents/storage-quota.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { Logger } from '../../telemetry/log.ts';
import { isOpenForRequests } from '../../tempering/promotion/promotion-record.ts';
import { promotionRules, statisticsGaps, useGaps } from '../../tempering/promotion/promotion-rules.ts';
import { recordingGaps } from '../../tempering/promotion/recording-rules.ts';
import type { AgentDirectory } from '../deps.ts';
import type { UsedSessionTool } from '../pods/tool-use-reports.ts';

export interface PromotionOpenerDeps {
  directory: Pick<AgentDirectory, 'byUid' | 'decider'>;
  registry: Pick<SessionRegistry, 'tools'>;
  states: Pick<PromotionStates, 'get'>;
  requests: Pick<PromotionRequests, 'publish'>;
  /** Limits the bytes of promotions. */
  quotaOf: (agentUid: string) => Pick<AgentQuota, 'reserve' | 'release'>;
  isTainted: (agentUid: string, session: string) => Promise<boolean>;
  clock: Clock;
  log: Logger;
}

/** A promotion whose tool is verified: its state and the verdicts of its panel. */
const PROMOTION_BYTES = 8_192;

/**
 * Requests the promotion of a tool when its reported uses meet the policy. They only open the verification, whose own figures decide. At
 * most one request per state of the promotion is stored, so a tool in use costs one read per report and no request during a cool-down.
 */
export function createPromotionOpener(deps: PromotionOpenerDeps): (tool: UsedSessionTool) => Promise<void> {
  const { directory, registry, states, requests, quotaOf, isTainted, clock, log } = deps;
  return async ({ agentUid, session, digest, statistics }) => {
    const state = directory.byUid(agentUid);
    if (state?.policy === undefined || state.suspended) return;
    const rules = promotionRules(state.policy.spec);
    if (statisticsGaps(statistics, rules).length > 0 || recordingGaps(statistics, 'Agent', rules).length > 0) return;
    const stored = await states.get({ agentUid, digest });
    if (!isOpenForRequests(stored.record, clock.now())) return;
    const tool = (await registry.tools(agentUid, session)).find((candidate) => candidate.digest === digest);
    if (tool === undefined || useGaps(tool, statistics, rules).length > 0) return;
    const decider = directory.decider(state, await isTainted(agentUid, session));
    const decision = decider.decide({ kind: 'Promote', tool: tool.artifact.name, tier: 'Agent' });
    if (decision.effect === 'Deny') return;
    try {
      if (stored.record === undefined) await assertStorable(quotaOf(agentUid));
      await requests.publish({ agentUid, digest, session }, stored.revision);
    } catch (error) {
      // Uses continue while the requests of the agent wait, or may not be stored; a later one requests the promotion again.
      if (!isTemperError(error, 'TEMPER_BUS_FULL') && !isTemperError(error, 'TEMPER_STORAGE_LIMIT_EXCEEDED'))
        throw error;
      log.warn({ agent: state.agent.metadata.name, digest, error }, 'a promotion request was not stored');
    }
  };
}

/** The operator stores the promotion, and the next count has it: each use would count it again. */
async function assertStorable(quota: Pick<AgentQuota, 'reserve' | 'release'>): Promise<void> {
  await quota.reserve('requests', PROMOTION_BYTES);
  quota.release('requests', PROMOTION_BYTES);
}
