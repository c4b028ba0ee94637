import type { ErrorCode } from '../lib/error-codes.ts';
import type { CallOptions } from '../lib/call-options.ts';

/** A message as its sender writes it. */
export interface MessageDraft {
  to: string;
  session: string;
  text: string;
}

/** A message as it is delivered. `root`, `depth` and `deadline` are copied from the sender's own delivery, never from the sender's input. */
export interface Envelope extends MessageDraft {
  id: string;
  from: string;
  root: string;
  depth: number;
  /** RFC 3339. */
  deadline: string;
  time: string;
  /** W3C Trace Context of the sender's span. Over NATS the gateway writes it as a message header. */
  traceparent?: string;
}

/** How a reply ended: `truncated` at a limit, `refusal` when the model or a limit refused to answer. */
export type FinishReason = 'complete' | 'truncated' | 'refusal';

export interface Receipt {
  id: string;
  /** A message with this key was sent before; `id` is that of the first message. */
  duplicate: boolean;
}

/**
 * One delivery of a message. Exactly one of `ack`, `retry` and `reject` ends it. A call after the end, or after the message was redelivered
 * because its acknowledgement timeout had passed, throws TEMPER_DELIVERY_LOST. A call that fails otherwise (TEMPER_BUS_*, TEMPER_GATEWAY_*)
 * did not end the delivery and may be repeated.
 */
export interface Delivery {
  message: Envelope;
  /** Identifies this delivery of the message; opaque to the receiver. */
  token: string;
  /** Acknowledges the message: it is not delivered again. */
  ack(): Promise<void>;
  /** Redelivers the message after this delay, before later messages of its session. */
  retry(delayMs: number): Promise<void>;
  /** Dead-letters the message with this code: it is not delivered again. */
  reject(code: ErrorCode): Promise<void>;
}

/** Sends messages between agents. */
export interface MessageSender {
  /**
   * Sends a message; it is stored when this resolves. Idempotent per sender, receiver and `op.key` for 30 minutes: a repeated call returns
   * the first receipt with `duplicate`. Throws TEMPER_POLICY_DENIED when the sender may not send, TEMPER_MESSAGE_DEPTH beyond the depth
   * limit of a chain, TEMPER_NOT_FOUND for an unknown receiver, TEMPER_BUS_FULL when the receiver's inbox is full, TEMPER_BUS_TOO_LARGE
   * for a text beyond the limit of NATS.
   */
  send(message: MessageDraft, op: CallOptions): Promise<Receipt>;
}

/** Receives the messages of one agent. */
export interface MessageReceiver {
  /**
   * Waits for the next message of this agent. Messages of one session arrive in the order in which they were sent, and at most one message
   * per session is in flight. Not idempotent: each call returns another delivery. Throws TEMPER_TIMEOUT when no message arrives by `op.deadline`, TEMPER_CANCELLED when `op.signal` aborts.
   */
  next(op: CallOptions): Promise<Delivery>;
}
