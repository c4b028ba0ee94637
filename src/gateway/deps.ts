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
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';
import type { SpanSink } from '../telemetry/tracing.ts';
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
  /**
   * Resolves when who is bound to the pod changes, or the agent, or its policy; or when the signal aborts. Look at the state
   * before waiting, without an await in between.
   */
  changed(of: { podUid?: string; state?: AgentState | undefined }, signal: AbortSignal): Promise<void>;
}

/** Uses that pods claim: they may open a promotion, never satisfy it. */
export interface ClaimedUses {
  /** All of one agent. Under a key that was recorded already nothing is recorded again. */
  record(agentUid: string, uses: readonly ToolUse[], key: string): Promise<void>;
}

/** What the gateway's own configuration makes of the names of models. */
export interface ModelCatalog {
  /** Undefined when no provider of the configuration has it. */
  resolve(name: string): { resolved: string; contextTokens: number } | undefined;
}

/** What is kept of sessions, as far as routes here read it. */
export interface SessionReports {
  /** Newest use first. */
  sessions(agentUid: string): Promise<SessionSummary[]>;
  tools(agentUid: string, session: string | undefined): Promise<SessionToolSummary[]>;
  /** Has untrusted content entered the session? */
  tainted(agentUid: string, session: string): Promise<boolean>;
}

/** What was spent. */
export interface UsageReports {
  agent(state: AgentState): Promise<UsageReport>;
  policy(policy: TrustPolicy): Promise<UsageReport>;
}

export interface GatewayDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: GatewayMetrics;
  /** Where the spans that pods report go; undefined when nothing is traced. */
  spans: SpanSink | undefined;
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
  sessions: SessionReports;
  usage: UsageReports;
  /** Aborts when the gateway begins to drain: long polls answer at once then. */
  draining: AbortSignal;
}
