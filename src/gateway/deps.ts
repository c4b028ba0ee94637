import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { Envelope } from '../bus/port.ts';
import type { Identity } from '../identity/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Ids } from '../lib/ids.ts';
import type { PolicySnapshot } from '../policy/types.ts';
import type { DeadLetter, FollowLine, SessionSummary, SessionToolSummary, UsageReport } from '../remote/people.ts';
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

export interface ReceivedMessage {
  message: Envelope;
  /** How any gateway settles this delivery. Opaque, at most 512 characters; holds nothing of the message. */
  receipt: string;
  deliveries: number;
}

/** The inboxes of agents, by the agent's uid. */
export interface Inboxes {
  /** Duplicate: a message with this key was kept before; `id` is then that message's. */
  send(
    agentUid: string,
    message: Envelope,
    key: string,
    signal: AbortSignal,
  ): Promise<{ id: string; duplicate: boolean }>;
  /** The next message, or undefined when none came in time. */
  next(agentUid: string, waitMilliseconds: number, signal: AbortSignal): Promise<ReceivedMessage | undefined>;
  acknowledge(receipt: string, signal: AbortSignal): Promise<void>;
  retry(receipt: string, afterMilliseconds: number, signal: AbortSignal): Promise<void>;
  /** Not delivered again. */
  terminate(receipt: string, signal: AbortSignal): Promise<void>;
  extend(receipt: string, signal: AbortSignal): Promise<void>;
  /** Messages that wait, and that are being worked on. */
  counts(agentUid: string, signal: AbortSignal): Promise<{ waiting: number; inFlight: number }>;
  /** After so long without an answer or an extension a message is delivered again. */
  readonly leaseMilliseconds: number;
}

type Unnumbered<L> = L extends unknown ? Omit<L, 'seq'> : never;
export type EventEntry = Unnumbered<FollowLine>;

/** What followers of a session read: claimed events, and replies that gateways wrote. */
export interface Events {
  /** The same key twice is one entry. */
  append(agentUid: string, session: string, entry: EventEntry, key: string, signal: AbortSignal): Promise<void>;
  /** From after `seq`, oldest first. Without `live` it ends with what there is. */
  follow(
    agentUid: string,
    session: string,
    options: { after: number; live: boolean },
    signal: AbortSignal,
  ): AsyncIterable<FollowLine>;
}

/** A dead letter and the message itself, with which it can be sent again. */
export interface KeptDeadLetter {
  summary: DeadLetter;
  original: Envelope;
}

export interface DeadLetters {
  /** The same message twice is one. */
  bury(
    agentUid: string,
    letter: { message: Envelope; code: ErrorCode; text: string; deliveries: number },
    signal: AbortSignal,
  ): Promise<void>;
  /** Newest first, at most 1,000. */
  list(agentUid: string, signal: AbortSignal): Promise<KeptDeadLetter[]>;
  find(agentUid: string, id: string, signal: AbortSignal): Promise<KeptDeadLetter | undefined>;
  drop(agentUid: string, id: string, signal: AbortSignal): Promise<void>;
}

export interface Wakes {
  wake(agentUid: string, signal: AbortSignal): Promise<void>;
}

/** Provenance; the namespace is the gateway's word, never the pod's. The same key twice is one record. */
export interface AuditStream {
  append(namespace: string, record: AuditRecord, key: string, signal: AbortSignal): Promise<void>;
}

/** Uses that pods claim: they may open a promotion, never satisfy it. */
export interface ClaimedUses {
  record(agentUid: string, use: ToolUse, key: string, signal: AbortSignal): Promise<void>;
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
  inboxes: Inboxes;
  events: Events;
  deadLetters: DeadLetters;
  wakes: Wakes;
  audit: AuditStream;
  uses: ClaimedUses;
  models: ModelCatalog;
  reports: Reports;
  /** Aborts when the gateway begins to drain: long polls answer at once then. */
  draining: AbortSignal;
}
