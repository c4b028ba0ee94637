import type { TriggerStatus } from '../api/v1alpha1/schedule/trigger-status.ts';
import type { Spend } from '../api/v1alpha1/trustpolicy.ts';
import type { ReactivationOrder } from '../nats/tasks/task-record.ts';
import type { AssessedTool, FindingRules, ToolFinding } from '../tempering/hygiene/tool-findings.ts';
import type { UsedTogether } from '../discovery/graph/used-together.ts';
import type { PullRequestState } from '../nats/pull-requests.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { Resident, ResidentAgent } from '../nats/residents/resident.ts';
import type { PendingCall } from '../nats/pending-calls.ts';
import type { TrustTransition } from '../policy/trust/evaluate.ts';
import type { TaskEvidence, EvidenceMarks } from '../policy/trust/evidence.ts';
import type { ConditionUpdate } from './conditions.ts';
import type { StoredAgent, StoredPolicy } from './kube/types.ts';

/** A message in flight, identified by its JetStream sequence and its number of deliveries. */
export interface InFlightMessage {
  readonly streamSequence: number;
  readonly deliveries: number;
}

/**
 * Activity and messages of agents, as NATS stores them. Without NATS the operator works too: no agent is scaled to zero, and no data
 * is deleted. Except where noted, methods throw TEMPER_BUS_UNAVAILABLE while NATS is unreachable.
 */
export interface AgentActivity {
  /** Number of messages that wait for the agent or are in flight. */
  pending(agentUid: string, signal: AbortSignal): Promise<number>;
  /** Time of the last event of the agent. The Unix epoch when the agent has no event, because events expire after a day. */
  lastActivity(agentUid: string, signal: AbortSignal): Promise<Date>;
  /**
   * UIDs of agents that received a message while they had no pod, starting with those that arrived while no operator was consuming.
   * Waits while NATS is unreachable. A UID is acknowledged when the consumer requests the next one; otherwise it is redelivered.
   * Ends with the signal.
   */
  wakeups(signal: AbortSignal): AsyncIterable<string>;
  /** Agents with stored data. */
  residents(signal: AbortSignal): AsyncIterable<Resident>;
  /** Lists an agent as one with stored data, unless it is listed. */
  addResident(agent: ResidentAgent, release: string, signal: AbortSignal): Promise<void>;
  /** Stores when the Agent was first missing; undefined: it exists. */
  markMissing(agent: ResidentAgent, since: string | undefined, signal: AbortSignal): Promise<void>;
  /** Writes the audit record of a deletion. Idempotent. */
  recordDeletion(agent: Resident, missingSince: string, signal: AbortSignal): Promise<void>;
  /** Deletes all stored data of a deleted agent, and its entry last. Idempotent. */
  deleteAgentData(agent: ResidentAgent, signal: AbortSignal): Promise<void>;
  /** The messages that are in flight with the agent's pod. */
  inFlightMessages(agentUid: string, signal: AbortSignal): Promise<InFlightMessage[]>;
  /**
   * Redelivers these messages at once and returns how many. A message that was redelivered or completed since is left alone: one in
   * flight with a later pod stays with that pod.
   */
  redeliver(agentUid: string, messages: readonly InFlightMessage[], signal: AbortSignal): Promise<number>;
  /**
   * Emits the start of an outage once it lasts longer than `graceMs` milliseconds, and undefined when it ends. Does not throw. Ends
   * with the signal.
   */
  outages(graceMs: number, signal: AbortSignal): AsyncIterable<Date | undefined>;
  /** Since when NATS is unreachable; undefined while it is reachable. Does not throw. */
  unavailableSince(): Date | undefined;
}

/** Calls of agents that need an approval, as NATS stores them. Methods throw TEMPER_BUS_* while NATS is unreachable. */
export interface PendingCallSource {
  /** Changes with every change of a call. */
  revision(signal: AbortSignal): Promise<number>;
  /** UIDs of agents that have such calls, or had some. */
  agents(signal: AbortSignal): Promise<string[]>;
  calls(agentUid: string, signal: AbortSignal): Promise<readonly PendingCall[]>;
  /** False when the message of the call has ended. */
  hasMessage(call: PendingCall, signal: AbortSignal): Promise<boolean>;
  /** Removes calls that have ended. Idempotent. */
  remove(agentUid: string, ended: readonly PendingCall[], signal: AbortSignal): Promise<void>;
}

/** State of an agent from NATS. Each member is undefined while it is unknown. */
export interface AgentRuntimeState {
  /** Undefined also while the models are available and the status has no ModelAvailable condition yet. */
  model?: ConditionUpdate<'ModelAvailable'>;
  budget?: ConditionUpdate<'BudgetAvailable'>;
  /** Usage in one line. Undefined until the agent used something. */
  summary?: string;
  queue?: number;
  /** Undefined until an event matched a trigger. */
  triggers?: TriggerStatus[];
  heartbeat?: AgentHeartbeat;
}

/** The pods of an agent work on its messages, or the condition that says they do not. */
export type AgentHeartbeat = 'Reported' | ConditionUpdate<'Responsive'>;

/** The JetStream store. A store that was lost is created again, empty. */
export interface NatsStore {
  /** Creation time, RFC 3339. A different value means a different store. */
  readonly createdAt: string;
  /** By agent UID: messages that waited or were in flight in the previous store, as last observed by this process. */
  readonly lostMessages: Readonly<Record<string, number>>;
}

/** Observed records of the operator in the audit log. */
export interface OperatorAudit {
  /** Stored once per key within 30 minutes. Throws TEMPER_BUS_*. */
  append(namespace: string, record: AuditRecord, once: string): Promise<void>;
}

export interface AgentStats {
  /** Reads from memory, without I/O. */
  get(agent: StoredAgent, policy: StoredPolicy | undefined): AgentRuntimeState;
  /** Undefined until the first read. */
  store(): NatsStore | undefined;
  /** Emits after each refresh. Does not throw. Ends with the signal. */
  updates(signal: AbortSignal): AsyncIterable<void>;
}

/** Spend from the ledger. The operator writes it to the policy status, and an empty ledger is restored from there. */
export interface SpendReader {
  /** Spend of the current windows. Undefined while NATS is unreachable. Throws when the ledger cannot be read. */
  ofPolicy(policyUid: string, signal: AbortSignal): Promise<Spend[] | undefined>;
}

/** The pull requests that gateways opened for ApprovalRequests. */
export interface PullRequestReader {
  /** Undefined while NATS is unreachable. */
  states(): Promise<readonly PullRequestState[] | undefined>;
}

/** Who changed trust, for the audit trail. */
export interface TrustChange {
  readonly agent: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly policy: { readonly name: string; readonly generation: number };
  readonly transition: TrustTransition;
  /** The same for a repeated record of the same change. */
  readonly key: string;
}

/** What the records of an agent are asked about its tools. */
export interface ToolMarks extends FindingRules {
  readonly tools: readonly AssessedTool[];
}

/** What the records of an agent say about its tools. */
export interface AgentToolEvidence {
  readonly findings: readonly ToolFinding[];
  /** What users want verified again. */
  readonly orders: readonly ReactivationOrder[];
  /** The pairs that its tasks use together, of tools in service. */
  readonly usedTogether: readonly UsedTogether[];
}

/** The folded records of tasks, by which agents earn and lose their level, and lose tools. */
export interface TrustEvidence {
  /** Reads from memory. Undefined until the records of the agent are folded from these marks; `updates` then emits the agent. */
  get(agentUid: string, marks: EvidenceMarks): TaskEvidence | undefined;
  /** The same for its tools. */
  tools(agentUid: string, marks: ToolMarks): AgentToolEvidence | undefined;
  forget(agentUid: string): void;
  /** Emits the UIDs of agents whose evidence is new. Does not throw. Ends with the signal. */
  updates(signal: AbortSignal): AsyncIterable<readonly string[]>;
  /** Writes the audit record of a change. Throws TEMPER_BUS_*. */
  record(change: TrustChange): Promise<void>;
}

export const NO_AGENT_STATS: AgentStats = {
  get: () => ({}),
  store: () => undefined,
  // oxlint-disable-next-line require-yield -- never emits
  async *updates() {},
};
