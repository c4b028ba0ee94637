import { createPullRequestStore } from '../../nats/pull-requests.ts';
import type {
  AgentActivity,
  AgentStats,
  OperatorAudit,
  PendingCallSource,
  PullRequestReader,
  SpendReader,
  TrustEvidence,
} from '../ports.ts';
import type { ChildRequestSource } from '../children/child-requests.ts';
import { natsChildRequests } from './sources/child-request-source.ts';
import { natsPendingCalls } from './sources/pending-call-source.ts';
import { NatsAgentStats } from './agent-stats.ts';
import { type AuditStream, natsAuditStream } from '../../nats/audit-stream.ts';
import { NatsLink, type NatsLinkDeps, type NatsOptions } from './nats-link.ts';
import { NatsAgentActivity } from './agent-activity.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import { NatsPromotionStore } from './sources/promotion-store.ts';
import { natsOperatorAudit } from './audit-writer.ts';
import { ledgerSpendReader } from './spend-reader.ts';
import { SourceKeyring } from '../../nats/sources/source-cipher.ts';
import type { ScheduleStore } from '../schedules/ports.ts';
import type { WithheldStore } from '../withheld/ports.ts';
import { natsWithheldStore } from './sources/withheld-store.ts';
import type { PlatformEventStore } from '../platform-events/ports.ts';
import { natsPlatformEvents } from './sources/platform-event-store.ts';
import { natsScheduleStore } from './sources/schedule-store.ts';
import { NatsTrustEvidence } from './sources/task-evidence.ts';

/** The NATS adapters of the operator. Disposing closes the connection. */
export interface OperatorNats extends AsyncDisposable {
  readonly agentActivity: AgentActivity;
  readonly agentStats: AgentStats;
  readonly spend: SpendReader;
  readonly pendingCalls: PendingCallSource;
  readonly childRequests: ChildRequestSource;
  readonly pullRequests: PullRequestReader;
  readonly trustEvidence: TrustEvidence;
  readonly auditStream: AuditStream;
  readonly promotions: PromotionStore;
  readonly audit: OperatorAudit;
  /** Gets its keys from the Secret of the release. */
  readonly sourceKeys: SourceKeyring;
  readonly withheld: WithheldStore;
  readonly scheduleStore: ScheduleStore;
  readonly platformEventStore: PlatformEventStore;
}

/** Starts to connect in the background and returns at once. */
export function openOperatorNats(
  options: NatsOptions,
  deps: Pick<NatsLinkDeps, 'clock' | 'log' | 'metrics' | 'owner'>,
  sourceKeys = new SourceKeyring(),
): OperatorNats {
  const link = new NatsLink(options, deps);
  return {
    agentActivity: new NatsAgentActivity({ ...deps, link }),
    agentStats: new NatsAgentStats({ ...deps, link }),
    spend: ledgerSpendReader(link, deps.clock),
    pendingCalls: natsPendingCalls(link),
    childRequests: natsChildRequests(link),
    pullRequests: {
      async states() {
        if (link.unavailableSince() !== undefined) return undefined;
        return (await createPullRequestStore(link.current()).read()).document?.requests ?? [];
      },
    },
    trustEvidence: new NatsTrustEvidence({ ...deps, link }),
    auditStream: natsAuditStream(() => link.current()),
    promotions: new NatsPromotionStore({ ...deps, link, sourceKeys }),
    audit: natsOperatorAudit(link),
    sourceKeys,
    withheld: natsWithheldStore(link, sourceKeys, deps.clock),
    platformEventStore: natsPlatformEvents(link),
    scheduleStore: natsScheduleStore({ ...deps, link, release: options.release }),
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  };
}
