import type { Spend } from '../api/v1alpha1/trustpolicy.ts';
import type { Finding } from './conditions.ts';
import type { StoredAgent, StoredPolicy } from './kube-types.ts';

/** One delivery, as the bus knows it. */
export interface HeldMessage {
  readonly streamSequence: number;
  readonly consumerSequence: number;
}

/** What the operator wants of the bus. Without a bus it works all the same: nothing is idle, nothing is swept. */
export interface Bus {
  /** Messages that wait for an agent. Throws when the bus cannot be asked. */
  pending(agentUid: string, signal: AbortSignal): Promise<number>;
  /** When the agent last did anything; the beginning of time when that is a day ago or longer. Throws when the bus cannot be asked. */
  lastActivity(agentUid: string, signal: AbortSignal): Promise<Date>;
  /**
   * Agents without a pod that have a message; those that were told while nobody listened come first. A bus that is away is waited for.
   * Ends with the signal.
   */
  wakes(signal: AbortSignal): AsyncIterable<string>;
  /** Uids of agents of which the bus keeps anything. */
  residents(signal: AbortSignal): Promise<readonly string[]>;
  /** Removes whatever the bus keeps of an agent that is gone. */
  sweep(agentUid: string, signal: AbortSignal): Promise<void>;
  /** What is in flight with the agent's pod. Throws when the bus cannot be asked. */
  held(agentUid: string, signal: AbortSignal): Promise<HeldMessage | undefined>;
  /** Has it delivered again at once. False when it was delivered again, or ended, since: what a later pod holds stays with it. */
  release(agentUid: string, held: HeldMessage, signal: AbortSignal): Promise<boolean>;
  /** Since when it is away, once that lasts longer than so many milliseconds, and undefined when it is back after. Ends with the signal. */
  outages(patience: number, signal: AbortSignal): AsyncIterable<Date | undefined>;
  /** Since when it cannot be reached; undefined while it can. */
  unavailableSince(): Date | undefined;
}

/** What is known of a working agent from elsewhere. Everything may be unknown. */
export interface AgentFacts {
  /** The state of its models, where it is not simply well. */
  model?: Finding<'ModelAvailable'>;
  budget?: Finding<'BudgetAvailable'>;
  /** Use of quotas in one line. */
  summary?: string;
  queue?: number;
  /** Tools at tier Agent. */
  tools?: number;
}

/** The store of the bus, which is made anew, empty, when it was lost. */
export interface BusStore {
  /** RFC 3339; another one is another store. */
  readonly made: string;
  /** By agent's uid: messages that waited or were worked on in the store before this one, as far as this process saw them. */
  readonly lost: Readonly<Record<string, number>>;
}

export interface Facts {
  /** Answers from memory; never waits. */
  of(agent: StoredAgent, policy: StoredPolicy | undefined): AgentFacts;
  /** Undefined until it was seen. */
  store(): BusStore | undefined;
  /** Each time more was learned. Ends with the signal. */
  learned(signal: AbortSignal): AsyncIterable<void>;
}

/** Spend as the ledger knows it, folded into the status of the policy, from which an empty ledger is seeded. */
export interface SpendReader {
  /** Undefined when nothing is known. Throws when the ledger does not answer. */
  ofPolicy(policyUid: string, signal: AbortSignal): Promise<Spend[] | undefined>;
}

export const NO_FACTS: Facts = {
  of: () => ({}),
  store: () => undefined,
  // oxlint-disable-next-line require-yield -- nothing is ever learned
  async *learned() {},
};
