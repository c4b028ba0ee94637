import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { JsonObject } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';

/** A message as its sender writes it. */
export interface MessageDraft {
  to: string;
  session: string;
  text: string;
  /** The session of the sender has untrusted content, and so has that of the receiver from then on. */
  tainted?: boolean;
}

/**
 * Who caused a message: a user, another agent, the answer to a message that asked for one, a schedule, an event, an agent elsewhere.
 * The gateway or the operator writes it, never a sender.
 */
export const MESSAGE_SOURCES = ['User', 'Agent', 'Reply', 'Schedule', 'Trigger', 'Peer'] as const;
export type MessageSource = (typeof MESSAGE_SOURCES)[number];

/** A call of a tool that a program of a user makes as the agent. The agent makes it without its model. */
export interface MessageCall {
  /** The name of the tool. */
  tool: string;
  /** Of a forged tool: another tool of this name is not called. */
  digest?: Digest;
  input: JsonObject;
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
  /** Absent in messages of an older release. */
  source?: MessageSource;
  /** The agents that this chain passed, the sender last, by UID. Not for receivers. */
  ancestors?: readonly string[];
  /** UID of the agent that gets the answer. Not for receivers. */
  asker?: string;
  /** With source `Reply`: the message that it answers. */
  answers?: string;
  /** The message is this call; its text only describes it. */
  call?: MessageCall;
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

/** A message that asked for an answer. */
export interface Task {
  /** The id of the message. */
  ticket: string;
  /** The agent that was asked. */
  agent: string;
  /** `Delivered`: the answer came to the session as a message, or another message of it took the answer. */
  state: 'Pending' | 'Answered' | 'Failed' | 'Delivered';
  /** With `Answered`. */
  text?: string;
  finishReason?: FinishReason;
  /** The session that gave the answer has untrusted content. */
  tainted?: boolean;
  /** With `Failed`. */
  code?: ErrorCode;
  reason?: string;
}

export interface AskWait {
  milliseconds: number;
  /** The wait in seconds as the call states it, for approvers, who see the arguments of the call. */
  stated?: number;
}

/** Asks other agents. A ticket belongs to the session that asked. */
export interface TaskSender {
  /**
   * Sends a message whose answer comes back: within the wait as the result, else later as a message of the asking session, once. Throws
   * what `send` throws, and TEMPER_MESSAGE_CYCLE when the receiver is part of this chain itself. Idempotent like `send`.
   */
  ask(message: MessageDraft, wait: AskWait, op: CallOptions): Promise<Task>;
  /** The state of a task, at the latest after `waitMs`. An answer that it returns is not delivered as a message. Throws TEMPER_NOT_FOUND for a ticket of another session. */
  task(ticket: string, waitMs: number, op: CallOptions): Promise<Task>;
}

/** Receives the messages of one agent. */
export interface MessageReceiver {
  /**
   * Waits for the next message of this agent. Messages of one session arrive in the order in which they were sent, and at most one message
   * per session is in flight. Not idempotent: each call returns another delivery. Throws TEMPER_TIMEOUT when no message arrives by `op.deadline`, TEMPER_CANCELLED when `op.signal` aborts.
   */
  next(op: CallOptions): Promise<Delivery>;
}
