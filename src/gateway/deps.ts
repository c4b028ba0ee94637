import type { WatchedSkills } from './discovery/skills.ts';
import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import type { Authenticator } from '../identity/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { UsageGroup } from '../ledger/usage/usage-groups.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { AgentScheduleStore } from '../nats/schedules/agent-schedule-store.ts';
import type { ScheduleStates } from '../nats/schedules/schedule-states.ts';
import type { ChildRequestStore } from '../nats/children/child-requests.ts';
import type { AcceptedEvents } from '../nats/events/accepted-events.ts';
import type { EventHistory } from '../nats/events/event-history.ts';
import type { SubscriptionStore } from '../nats/events/subscriptions.ts';
import type { TriggerFireStore } from '../nats/events/trigger-fires.ts';
import type { NatsAudit } from '../nats/audit.ts';
import type { AuditStream } from '../nats/audit-stream.ts';
import type { DeadLetters } from '../nats/dead-letters/dead-letters.ts';
import type { SessionEvents } from '../nats/session-events.ts';
import type { NatsInbox } from '../nats/inbox/inbox.ts';
import type { SessionMarks } from '../nats/sessions/session-head.ts';
import type { NatsSessionStore } from '../nats/sessions/port.ts';
import type { PeerTasks } from '../nats/tasks/peer-tasks.ts';
import type { TaskRecords } from '../nats/tasks/task-records.ts';
import type { ToolAuditStore } from '../nats/promotion/tool-audits.ts';
import type { Verifications } from '../nats/promotion/verifications.ts';
import type { Wakeups } from '../nats/wakeups.ts';
import type { ManifestCheck } from '../policy/children/wanted-child.ts';
import type { Decider, PolicySnapshot } from '../policy/types.ts';
import type { SessionSummary, SessionToolSummary, UsageBreakdown, UsageReport } from '../gateway-api/user-api.ts';
import type { Logger } from '../telemetry/log.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';
import type { SpanSink } from '../telemetry/tracing.ts';
import type { RegisteredTool, ToolUse } from '../tempering/types.ts';
import type { AgentState } from './agent-state.ts';
import type { EventLimits } from './events/event-limits.ts';
import type { EventPublisherPort } from './events/port.ts';
import type { CallApprovals } from './approvals/call-approvals.ts';
import type { AgentRepositories } from './git/agent-repositories.ts';
import type { AllBrokeredTools } from './brokered/port.ts';
import type { AnswerSignatures } from './delivery/answer-signatures.ts';
import type { DeliveryTokens } from './delivery/token.ts';
import type { ReportLimits } from './storage/report-limits.ts';
import type { ReadSessionContent } from './storage/session-content.ts';
import type { Answers } from './tasks/answers.ts';
import type { TaskRecorder } from './tasks/recorder.ts';

/** Agents and policies from the informer caches. All reads are synchronous, may lag behind the API server, and throw only where stated. */
export interface AgentDirectory {
  /** Undefined when the cache has no such Agent. */
  agent(namespace: string, name: string): AgentState | undefined;
  /** By `metadata.uid`; undefined when the cache has no such Agent. */
  byUid(agentUid: string): AgentState | undefined;
  /** All agents of the namespace, in no particular order; empty when there are none. */
  agents(namespace: string): AgentState[];
  /** The living children of an agent. */
  children(agentUid: string): AgentState[];
  /** The child agents under a policy. */
  childrenUnder(namespace: string, policy: string): number;
  /** Undefined when the cache has no such TrustPolicy. */
  policy(namespace: string, name: string): TrustPolicy | undefined;
  /** The input of `decide()`. Throws TEMPER_POLICY_DENIED when the policy of the agent does not exist. */
  snapshot(state: AgentState, tainted: boolean, hasPrivateData?: boolean): PolicySnapshot;
  /**
   * Decides over this snapshot; compiled once per version of the agent and its policy. Throws as `snapshot` does.
   */
  decider(state: AgentState, tainted: boolean, options?: DeciderOptions): Decider;
  /**
   * Resolves when the binding of the pod, the agent or its policy changes, or when the signal aborts. Never rejects. Read the state
   * before this call, without an await in between; otherwise a change may be missed.
   */
  changed(of: { podUid?: string; state?: AgentState | undefined }, signal: AbortSignal): Promise<void>;
}

/** What else a decision is about. */
export interface DeciderOptions {
  /** Replaces the model names of the spec, for decisions over resolved names. */
  model?: Agent['spec']['model'];
  /** The session has private data. */
  hasPrivateData?: boolean;
}

/** Tool uses that pods report: they may open a promotion, never satisfy it. */
export interface ToolUseReports {
  /**
   * Records uses of one agent. `isDelivered`: session and root message are those of a delivery to this agent; other uses are only
   * recorded. Idempotent per key. Throws TEMPER_BUS_* when NATS cannot store them; retry with the same key then.
   */
  record(agentUid: string, uses: readonly ToolUse[], key: string, isDelivered: boolean): Promise<void>;
}

/** Resolves model names by the gateway's configuration. */
export interface ModelCatalog {
  /**
   * `resolved` is `provider/model`, `contextTokens` the size of its context window in tokens, from the configuration or the built-in
   * default. Undefined when the configuration has no provider for the name.
   */
  resolve(name: string): { resolved: string; contextTokens: number } | undefined;
  /** Searches compare meanings. */
  hasEmbedder?: boolean;
}

/** Stored facts about sessions that routes read. */
export interface SessionReports {
  /** Most recently used first. */
  sessions(agentUid: string): Promise<SessionSummary[]>;
  /** Tools of one session; of all sessions of the agent when `session` is undefined. */
  tools(agentUid: string, session: string | undefined): Promise<SessionToolSummary[]>;
  /** True when untrusted content has entered the session. Reads no history. */
  tainted(agentUid: string, session: string): Promise<boolean>;
  /** The same, and whether private data has. */
  marks(agentUid: string, session: string): Promise<SessionMarks>;
  /** True when the agent got a message of this session and did not close it. May lag by a minute behind a closed session. */
  exists(agentUid: string, session: string): Promise<boolean>;
}

/**
 * Spend against quotas, from the shared ledger. Tokens in units, cost in millionths of a dollar. Read-only. Throws
 * TEMPER_LEDGER_UNAVAILABLE when the ledger cannot be read.
 */
export interface UsageReports {
  /** Spend of one agent against its own quotas. */
  agent(state: AgentState): Promise<UsageReport>;
  /** Spend of all agents under the policy against the policy's quotas. Throws TEMPER_POLICY_DENIED for a policy without a uid. */
  policy(policy: TrustPolicy): Promise<UsageReport>;
  /** What the calls of these agents were charged, by model, day and other members. Throws TEMPER_BUS_*. */
  breakdown(agents: readonly AgentState[], query: UsageQuery): Promise<UsageBreakdown>;
}

interface UsageQuery {
  by: UsageGroup;
  /** The first day, `2026-05-04`. */
  since: string;
}

export interface GatewayDeps {
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
  metrics: GatewayMetrics;
  /** Receives the spans that pods report; undefined when tracing is off. */
  spans: SpanSink | undefined;
  identity: Authenticator;
  directory: AgentDirectory;
  /** The manifests of child agents. */
  manifests: ManifestCheck;
  /** Changes with the promoted tools of the agent, and with each revocation in its namespace; the same at every replica. */
  toolsVersion: (namespace: string, agent: string) => string;
  /** The skills of namespaces. */
  skills: Pick<WatchedSkills, 'any' | 'find'>;
  deliveryTokens: DeliveryTokens;
  answerSignatures: AnswerSignatures;
  inbox: NatsInbox;
  events: SessionEvents;
  deadLetters: DeadLetters;
  wakeups: Wakeups;
  audit: NatsAudit;
  auditStream: AuditStream;
  /** Approvals of calls. */
  approvals: CallApprovals;
  /** Tools that the gateway executes. */
  brokered: AllBrokeredTools;
  /** Repositories that connections name for namespaces. */
  repositories: AgentRepositories;
  /** The tools that the agent has in the session, in service. */
  toolsOf: (agent: { agentUid: string; namespace: string }, session: string) => Promise<RegisteredTool[]>;
  /** Removes the tools of a session, and the uses of those that no other session of the agent has. Returns their number. */
  closeTools: (agentUid: string, session: string) => Promise<number>;
  /** Records the tasks that this gateway sees. */
  recorder: TaskRecorder;
  /** Requests about child agents. */
  childRequests: ChildRequestStore;
  /** Schedules that agents made. */
  agentSchedules: AgentScheduleStore;
  scheduleStates: Pick<ScheduleStates, 'read'>;
  /** Tasks of callers over A2A. */
  peerTasks: PeerTasks;
  /** The address of this gateway in agent cards, without a path. */
  a2aUrl: string;
  /** Events of namespaces, and the messages that they cause. */
  namespaceEvents: EventPublisherPort;
  acceptedEvents: Pick<AcceptedEvents, 'open'>;
  eventHistory: Pick<EventHistory, 'read'>;
  eventLimits: Pick<EventLimits, 'take'>;
  subscriptions: SubscriptionStore;
  triggerFires: Pick<TriggerFireStore, 'read'>;
  /** Answers to messages that asked. */
  answers: Answers;
  tasks: Pick<TaskRecords, 'find' | 'rate' | 'read' | 'reactivate'>;
  uses: ToolUseReports;
  verifications: Pick<Verifications, 'waitForWork' | 'work' | 'putOutputs'>;
  /** Audits of tools by fresh agents. */
  toolAudits: Pick<ToolAuditStore, 'get' | 'write'>;
  /** Bytes per second that an agent reports. */
  reportLimits: Pick<ReportLimits, 'take'>;
  /** Tools per second that an agent submits for review. */
  reviewLimits: Pick<ReportLimits, 'take'>;
  models: ModelCatalog;
  sessions: SessionReports;
  /** What a delivery brings with its message. */
  sessionContent: ReadSessionContent;
  /** The sessions of one agent. */
  sessionsOf: (agentUid: string) => NatsSessionStore;
  usage: UsageReports;
  /** Aborts when the drain starts: long polls then respond at once. */
  draining: AbortSignal;
}
