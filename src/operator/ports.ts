import type { PromotionReview } from '../api/v1alpha1/approvalrequest.ts';
import type { Spend } from '../api/v1alpha1/trustpolicy.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Resident, ResidentAgent } from '../nats/residents/resident.ts';
import type { ToolStatistics } from '../tempering/types.ts';
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
  /** The message that is in flight with the agent's pod. */
  inFlightMessage(agentUid: string, signal: AbortSignal): Promise<InFlightMessage | undefined>;
  /**
   * Redelivers the message at once. Returns false, without effect, when the message was redelivered or completed since: a message in
   * flight with a later pod stays with that pod.
   */
  redeliver(agentUid: string, message: InFlightMessage, signal: AbortSignal): Promise<boolean>;
  /**
   * Emits the start of an outage once it lasts longer than `graceMs` milliseconds, and undefined when it ends. Does not throw. Ends
   * with the signal.
   */
  outages(graceMs: number, signal: AbortSignal): AsyncIterable<Date | undefined>;
  /** Since when NATS is unreachable; undefined while it is reachable. Does not throw. */
  unavailableSince(): Date | undefined;
}

/** State of an agent from NATS. Each member is undefined while it is unknown. */
export interface AgentRuntimeState {
  /** Undefined also while the models are available and the status has no ModelAvailable condition yet. */
  model?: ConditionUpdate<'ModelAvailable'>;
  budget?: ConditionUpdate<'BudgetAvailable'>;
  /** Usage in one line. Undefined until the agent used something. */
  summary?: string;
  queue?: number;
}

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

/** Uses of one tool by one agent, as its pods report them. */
export interface ReportedToolUses {
  readonly agentUid: string;
  readonly digest: string;
  readonly statistics: ToolStatistics;
}

/** Uses of tools of tiers Agent and Shared of the last days. Nothing confirms them. */
export interface ToolUses {
  /** Uses of a tool by these agents, added up. Undefined while NATS is unreachable. */
  reported(
    digest: Digest,
    agentUids: readonly string[],
    signal: AbortSignal,
  ): Promise<NonNullable<PromotionReview['reportedUses']> | undefined>;
  /** All of them. Throws TEMPER_BUS_UNAVAILABLE. */
  all(signal: AbortSignal): AsyncIterable<ReportedToolUses>;
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

export const NO_AGENT_STATS: AgentStats = {
  get: () => ({}),
  store: () => undefined,
  // oxlint-disable-next-line require-yield -- never emits
  async *updates() {},
};
