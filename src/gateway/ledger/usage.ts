import { quotaLimits } from '../../agent/quotas.ts';
import type { QuotaLimits } from '../../ledger/quotas.ts';
import { groupUsage } from '../../ledger/usage/group-usage.ts';
import type { DatedUsage } from '../../ledger/usage/usage-entry.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { AccountReport, SharedLedger } from '../../nats/ledger/ledger.ts';
import { agentAccount } from '../../nats/ledger/spend-summary.ts';
import type { UsageParts } from '../../nats/tasks/usage-parts.ts';
import type { UsageReport } from '../../gateway-api/user-api.ts';
import type { AgentState } from '../agent-state.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { AgentDirectory, UsageReports } from '../deps.ts';
import { policyHolder } from './accounts.ts';
import type { UsageRecorder } from './usage-recorder.ts';

interface UsageReportDeps {
  ledger: SharedLedger;
  directory: Pick<AgentDirectory, 'policy'>;
  parts: Pick<UsageParts, 'read'>;
  recorder: Pick<UsageRecorder, 'flush'>;
}

/** Rows of one answer. */
const MAX_ROWS = 500;

/** Spend for users: committed spend, and tokens in flight, which include allocated blocks. */
export function createUsageReports({ ledger, directory, parts, recorder }: UsageReportDeps): UsageReports {
  return {
    async agent(state: AgentState) {
      return reportOf(await ledger.report(agentAccount(state.uid)), quotaLimits(state.agent.spec.quotas));
    },
    async policy(policy: TrustPolicy) {
      const { name, initialSpend: opening } = policyHolder(policy, directory);
      return reportOf(await ledger.report(name, opening), quotaLimits(policy.spec.quotas));
    },
    async breakdown(agents, { by, since }) {
      await recorder.flush();
      const kind = by === 'Root' ? 'roots' : 'days';
      const found = await mapInBatches(agents, (state) => usageOf(state, (team) => parts.read(team, kind, since)));
      const rows = groupUsage(found.flat(), by);
      const complete = rows.length <= MAX_ROWS;
      return {
        by,
        since,
        rows: rows.slice(0, MAX_ROWS).map((row) => ({ ...row, unpriced: [...row.unpriced] })),
        complete,
      };
    },
  };
}

/** Of an agent without a parent the usage of its whole team; of a child its own. */
async function usageOf(
  state: AgentState,
  read: (team: { uid: string; name: string }) => Promise<DatedUsage[]>,
): Promise<DatedUsage[]> {
  const team = state.ancestors.at(-1) ?? state;
  const all = await read({ uid: team.uid, name: team.agent.metadata.name });
  return team === state ? all : all.filter(({ agent }) => agent === state.agent.metadata.name);
}

function reportOf({ windows }: AccountReport, limits: QuotaLimits): UsageReport {
  return {
    windows: (['hour', 'day', 'month'] as const).map((window) => {
      const { spent, held } = windows[window];
      const { inputTokens, outputTokens, costMicros, networkBytes } = spent;
      return { window, inputTokens, outputTokens, costMicros, inFlightTokens: held.tokens, networkBytes };
    }),
    limits: Object.fromEntries(
      // Millionths of a dollar, under the field names of manifests.
      Object.entries(limits).map(([name, limit]) => [name.replace('costMicros', 'cost'), limit]),
    ),
  };
}
