import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import type { Identity } from '../identity/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Ids } from '../lib/ids.ts';
import type { BusAudit } from '../nats/audit.ts';
import type { DeadLetters } from '../nats/dead-letters.ts';
import type { Events } from '../nats/events.ts';
import type { Inbox } from '../nats/inbox.ts';
import type { Wakes } from '../nats/wakes.ts';
import type { PolicySnapshot } from '../policy/types.ts';
import type { SessionSummary, SessionToolSummary, UsageReport } from '../remote/people.ts';
import type { Logger } from '../telemetry/log.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { Leases } from './lease.ts';

/** An agent as the API server last said it is, with what holds for it. */
export interface AgentState {
  /** Its uid; objects of the API always have one. */
  uid: string;
  agent: Agent;
  /** Absent while it does not exist: nothing is allowed then. */
  policy: TrustPolicy | undefined;
  /** The level that counts. */
  level: string;
  /** `spec.suspend` of the agent or the kill switch of its policy. */
  suspended: boolean;
  /** The pod that is bound now. */
  podUid: string | undefined;
}

/** The resources the gateway reads, watched. */
export interface Directory {
  agent(namespace: string, name: string): AgentState | undefined;
  byUid(agentUid: string): AgentState | undefined;
  agents(namespace: string): AgentState[];
  policy(namespace: string, name: string): TrustPolicy | undefined;
  /** What `decide()` is asked with. Throws TEMPER_POLICY_DENIED when the policy of the agent does not exist. */
  snapshot(state: AgentState, tainted: boolean): PolicySnapshot;
  /** Resolves at the next change of any of them, or when the signal aborts. */
  changed(signal: AbortSignal): Promise<void>;
  /** Have the first lists arrived? Until then nobody is known. */
  readonly synced: boolean;
}

/** Uses that pods claim: they may open a promotion, never satisfy it. */
export interface ClaimedUses {
  record(agentUid: string, use: ToolUse): Promise<void>;
}

/** What the gateway's own configuration makes of the names of models. */
export interface ModelCatalog {
  /** Undefined when no provider of the configuration has it. */
  resolve(name: string): { resolved: string; contextTokens: number } | undefined;
}

/** Read by people; kept by sessions, ledger and session tools. */
export interface Reports {
  sessions(agentUid: string, signal: AbortSignal): Promise<SessionSummary[]>;
  sessionTools(agentUid: string, session: string | undefined, signal: AbortSignal): Promise<SessionToolSummary[]>;
  agentUsage(state: AgentState, signal: AbortSignal): Promise<UsageReport>;
  policyUsage(policy: TrustPolicy, signal: AbortSignal): Promise<UsageReport>;
}

export interface GatewayDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  identity: Identity;
  directory: Directory;
  leases: Leases;
  inbox: Inbox;
  events: Events;
  deadLetters: DeadLetters;
  wakes: Wakes;
  audit: BusAudit;
  uses: ClaimedUses;
  models: ModelCatalog;
  reports: Reports;
  /** Aborts when the gateway begins to drain: long polls answer at once then. */
  draining: AbortSignal;
}
