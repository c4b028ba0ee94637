import type { Json } from '../lib/json.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Op } from '../lib/operation.ts';

/** A message as its sender writes it. */
export interface Draft {
  to: string;
  session: string;
  text: string;
}

/** A message as it is delivered. `root`, `depth` and `deadline` are copied from the sender's own delivery, never from what it says. */
export interface Envelope extends Draft {
  id: string;
  from: string;
  root: string;
  depth: number;
  /** RFC 3339. */
  deadline: string;
  time: string;
  /** W3C Trace Context of what sent it; from a bus it is a header of the message, made by us. */
  traceparent?: string;
}

export interface Receipt {
  id: string;
  /** The same key was sent before; this is the first one's receipt. */
  duplicate: boolean;
}

export interface Delivery {
  message: Envelope;
  lease: string;
  ack(): Promise<void>;
  retry(afterMilliseconds: number): Promise<void>;
  reject(code: ErrorCode): Promise<void>;
}

export interface BusEvent {
  type: string;
  agent: string;
  time: string;
  data: Json;
}

export interface Bus {
  send(message: Draft, op: Op): Promise<Receipt>;
  /** Waits for the next message of this agent; one in flight a session. */
  next(op: Op): Promise<Delivery>;
  events(types: readonly string[], op: Op): AsyncIterable<BusEvent>;
}
