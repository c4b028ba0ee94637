import type { AgentActivity, AgentStats, OperatorAudit, SpendReader } from '../ports.ts';
import { NatsAgentStats } from './agent-stats.ts';
import { NatsLink, type NatsLinkDeps, type NatsOptions } from './nats-link.ts';
import { NatsAgentActivity } from './agent-activity.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import { NatsPromotionStore } from './promotion-store.ts';
import { natsOperatorAudit } from './audit-writer.ts';
import { ledgerSpendReader } from './spend-reader.ts';

/** The NATS adapters of the operator. Disposing closes the connection. */
export interface OperatorNats extends AsyncDisposable {
  readonly agentActivity: AgentActivity;
  readonly agentStats: AgentStats;
  readonly spend: SpendReader;
  readonly promotions: PromotionStore;
  readonly audit: OperatorAudit;
}

/** Starts to connect in the background and returns at once. */
export function openOperatorNats(
  options: NatsOptions,
  deps: Pick<NatsLinkDeps, 'clock' | 'log' | 'metrics' | 'owner'>,
): OperatorNats {
  const link = new NatsLink(options, deps);
  return {
    agentActivity: new NatsAgentActivity({ ...deps, link }),
    agentStats: new NatsAgentStats({ ...deps, link }),
    spend: ledgerSpendReader(link, deps.clock),
    promotions: new NatsPromotionStore({ ...deps, link }),
    audit: natsOperatorAudit(link),
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  };
}
