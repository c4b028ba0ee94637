import { quotaLimits } from '../../agent/quotas.ts';
import type { QuotaLimits } from '../../ledger/quotas.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { AccountReport, SharedLedger } from '../../nats/ledger/ledger.ts';
import { agentAccount } from '../../nats/ledger/spend-summary.ts';
import type { UsageReport } from '../../gateway-api/user-api.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory, UsageReports } from '../deps.ts';
import { policyHolder } from './accounts.ts';

/** Spend for users: committed spend, and tokens in flight, which include allocated blocks. */
export function createUsageReports(ledger: SharedLedger, directory: Pick<AgentDirectory, 'policy'>): UsageReports {
  return {
    async agent(state: AgentState) {
      return reportOf(await ledger.report(agentAccount(state.uid)), quotaLimits(state.agent.spec.quotas));
    },
    async policy(policy: TrustPolicy) {
      const { name, initialSpend: opening } = policyHolder(policy, directory);
      return reportOf(await ledger.report(name, opening), quotaLimits(policy.spec.quotas));
    },
  };
}

function reportOf({ windows }: AccountReport, limits: QuotaLimits): UsageReport {
  return {
    windows: (['hour', 'day', 'month'] as const).map((window) => {
      const { spent, held } = windows[window];
      const { inputTokens, outputTokens, costMicros } = spent;
      return { window, inputTokens, outputTokens, costMicros, inFlightTokens: held.tokens };
    }),
    limits: Object.fromEntries(
      // Millionths of a dollar, under the field names of manifests.
      Object.entries(limits).map(([name, limit]) => [name.replace('costMicros', 'cost'), limit]),
    ),
  };
}
