import type { PublishedEvent } from '../../events/event.ts';
import type { ObservedRecord } from '../../events/platform/observed-object.ts';

export interface ObservedState {
  readonly record: ObservedRecord | undefined;
  readonly revision: number;
}

/** What events said about objects, and the gateways that publish them. Methods throw TEMPER_BUS_* while NATS is unreachable. */
export interface PlatformEventStore {
  read(uid: string): Promise<ObservedState>;
  /** Returns the new revision; undefined when another writer changed the record. */
  write(record: ObservedRecord, revision: number): Promise<number | undefined>;
  /** Idempotent. */
  remove(uid: string): Promise<void>;
  all(): Promise<readonly ObservedRecord[]>;
  /** The patterns that agents of the namespace subscribed to, as the stream leader has them now. */
  subscribed(namespace: string): Promise<readonly string[]>;
  /** Hands an event to the gateways, which publish it. Idempotent per id of the event. */
  announce(owner: { readonly uid: string; readonly namespace: string }, event: PublishedEvent): Promise<void>;
}
