import type { DeadLetterInput } from '../dead-letters/dead-letter-writer.ts';
import type { DeliveryState } from './delivery-state.ts';

export interface InboxMessage {
  sequence: number;
  data: Uint8Array;
  /** The header, not validated. */
  traceparent?: string;
}

/** A delivery state and its revision, for compare-and-swap. 0: no state is stored. */
export interface StoredDeliveryState {
  state: DeliveryState;
  revision: number;
}

/** How a message ended. */
export interface EndedMessage {
  sequence: number;
  /** The delivery that ended it; 0 when an older release wrote the record. */
  deliveries: number;
  outcome: 'acked' | 'rejected';
}

/** The data behind the inboxes. Methods throw TEMPER_BUS_*; after an error a write may have been stored. */
export interface InboxStore {
  /** Never stale. */
  readState(agentUid: string): Promise<StoredDeliveryState>;
  /** Returns the new revision; undefined when the state has another revision. */
  writeState(agentUid: string, state: DeliveryState, revision: number): Promise<number | undefined>;
  /** Never stale. Undefined when the agent has no such message any more. */
  message(agentUid: string, sequence: number): Promise<InboxMessage | undefined>;
  /**
   * Oldest first. May contain a message that was deleted a moment ago. `isExpected`, by default true: whether there is one most often, which
   * decides how it is read.
   */
  messages(agentUid: string, fromSequence: number, isExpected?: boolean): AsyncIterable<InboxMessage>;
  /** Idempotent. */
  deleteMessage(agentUid: string, sequence: number): Promise<void>;
  /** Never stale. Kept for a day. */
  readEnded(agentUid: string, message: string): Promise<EndedMessage | undefined>;
  writeEnded(agentUid: string, message: string, ended: EndedMessage): Promise<void>;
  /** Idempotent. False, without effect, when the message is no longer in the inbox. */
  writeDeadLetter(input: DeadLetterInput): Promise<boolean>;
}
