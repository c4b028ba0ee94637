import { createPullRequestStore } from '../../nats/pull-requests.ts';
import type {
  AgentActivity,
  AgentStats,
  OperatorAudit,
  PendingCallSource,
  PullRequestReader,
  SpendReader,
} from '../ports.ts';
import { natsPendingCalls } from './pending-call-source.ts';
import { NatsAgentStats } from './agent-stats.ts';
import { NatsLink, type NatsLinkDeps, type NatsOptions } from './nats-link.ts';
import { NatsAgentActivity } from './agent-activity.ts';
import { natsOperatorAudit } from './audit-writer.ts';
import { ledgerSpendReader } from './spend-reader.ts';

/** The NATS adapters of the operator. Disposing closes the connection. */
export interface OperatorNats extends AsyncDisposable {
  readonly agentActivity: AgentActivity;
  readonly agentStats: AgentStats;
  readonly spend: SpendReader;
  readonly pullRequests: PullRequestReader;
  readonly pendingCalls: PendingCallSource;
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
    pullRequests: {
      async states() {
        if (link.unavailableSince() !== undefined) return undefined;
        return (await createPullRequestStore(link.current()).read()).document?.requests ?? [];
      },
    },
    pendingCalls: natsPendingCalls(link),
    audit: natsOperatorAudit(link),
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  };
}
