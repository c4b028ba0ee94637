import type { Envelope, Receipt } from '../bus/port.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

/** Who sends, and the key under which sending twice is sending once. */
export interface Sender {
  /** Uid of the agent, or another identity made of `[A-Za-z0-9_-]`; never text somebody else chose. */
  uid: string;
  /** Any text. */
  key: string;
}

/** A message before it has an id. Without `root` it begins a chain and is its own root. */
export type NewMessage = Omit<Envelope, 'id' | 'root'> & { root?: string };

/** Everything another process needs to settle a delivery. Plain JSON; holds no secret and is no authority: sign it. */
export interface DeliveryCoordinates {
  agentUid: string;
  /** Id of the message. */
  message: string;
  streamSequence: number;
  consumerSequence: number;
  /** 1 for the first. */
  deliveries: number;
}

export interface InboxDelivery {
  message: Envelope;
  coordinates: DeliveryCoordinates;
  /** Without `working` it is delivered again after so long. */
  leaseMilliseconds: number;
}

export interface Waiting {
  /** Not delivered yet. */
  waiting: number;
  /** 0 or 1. */
  inFlight: number;
}

/** Inboxes of all agents. Any process may settle what any other fetched. */
export interface Inbox {
  /** Throws TEMPER_BUS_FULL when the inbox takes no more, TEMPER_BUS_TOO_LARGE beyond 200 KiB. */
  publish(agentUid: string, sender: Sender, message: NewMessage): Promise<Receipt>;
  /** The next message, or nothing when none came in time or the signal was aborted. One is in flight at a time. */
  fetchNext(agentUid: string, waitMilliseconds: number, signal: AbortSignal): Promise<InboxDelivery | undefined>;
  /** Done: it will not come again. Resolves when the server has confirmed. The same again is no error. */
  ack(at: DeliveryCoordinates): Promise<void>;
  /** Again, after a while. */
  retry(at: DeliveryCoordinates, afterMilliseconds: number): Promise<void>;
  /** Never again: to the dead letters. */
  reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void>;
  /** Still being worked on: the lease begins anew. */
  working(at: DeliveryCoordinates): Promise<void>;
  /** Gives back what is in flight at once, for a pod that is gone. False when nothing was. */
  release(agentUid: string): Promise<boolean>;
  waiting(agentUid: string): Promise<Waiting>;
  /** For a removed agent: its consumer and its messages. */
  remove(agentUid: string): Promise<void>;
  /** Uids of all agents that have a consumer. */
  agents(): Promise<string[]>;
}

/** The id a message gets: the same sender and key give the same one. */
export function messageId(_sender: Sender): string {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}

export function createInbox(_connection: BusConnection): Inbox {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
