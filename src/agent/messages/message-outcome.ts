import { callReplyText } from '../call/call-reply.ts';
import type { HandledMessage } from '../loop/loop.ts';
import type { FinishReason } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** The result of the work on one message, and so what to send to the gateway. */
export type MessageOutcome =
  | { end: 'answer'; reply: string; finishReason: FinishReason }
  /** The turn waits for the decisions about these requests. */
  | { end: 'park'; requests: readonly string[] }
  | { end: 'retry'; delayMs: number; code: ErrorCode }
  | { end: 'reject'; code: ErrorCode; message: string }
  /** The message was redelivered to another pod: no ack or nak. */
  | { end: 'lost' };

/** The message can never be processed: reject it, so that it becomes a dead letter. */
const UNPROCESSABLE: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_SESSION_INVALID',
  'TEMPER_SESSION_CLOSED',
  'TEMPER_GATEWAY_BAD_RESPONSE',
]);
/** A limit per message was reached: the text produced so far becomes the reply. */
const LIMIT_REACHED: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_TURN_LIMIT',
  'TEMPER_STEP_LIMIT',
  'TEMPER_LOOP_DETECTED',
]);
/** A retry may succeed, in this pod or another. NATS limits the number of deliveries. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_CANCELLED',
  'TEMPER_GATEWAY_UNAVAILABLE',
  'TEMPER_GATEWAY_UNTRUSTED',
  'TEMPER_GATEWAY_FORBIDDEN',
  'TEMPER_INTERNAL',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_STATE_CORRUPT',
]);
const RETRY_MS = 2_000;
const MAX_RETRY_MS = 60_000;

export function replyOutcome({
  reply,
  finishReason,
  parked,
}: Pick<HandledMessage, 'reply' | 'finishReason' | 'parked'>): MessageOutcome {
  if (parked !== undefined) return { end: 'park', requests: parked };
  return { end: 'answer', reply, finishReason };
}

/**
 * A failure that a retry would repeat becomes the reply, so that the user does not wait for an answer that never comes. A transient
 * failure is retried. Only a message that can never be processed is rejected, and becomes a dead letter.
 */
export function errorOutcome(error: unknown): MessageOutcome {
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  const message = printable(messageOf(error, 1_000), 1_000);
  if (code === 'TEMPER_DELIVERY_LOST') return { end: 'lost' };
  if (UNPROCESSABLE.has(code)) return { end: 'reject', code, message };
  if (TRANSIENT.has(code)) return { end: 'retry', delayMs: retryAfter(error), code };
  const partialReply = isTemperError(error) ? error.details['reply'] : undefined;
  if (LIMIT_REACHED.has(code) && typeof partialReply === 'string' && partialReply !== '') {
    return { end: 'answer', reply: `${partialReply}\n\n[${code}: ${message}]`, finishReason: 'truncated' };
  }
  return { end: 'answer', reply: `[${code}: ${message}]`, finishReason: 'refusal' };
}

/** The same for a call of a program, whose reply is the result of the call. */
export function callErrorOutcome(error: unknown): MessageOutcome {
  const outcome = errorOutcome(error);
  if (outcome.end !== 'answer') return outcome;
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  return { ...outcome, reply: callReplyText({ ok: false, error: { code, message: messageOf(error, 1_000) } }) };
}

/**
 * The members of a log line about the error. What becomes the reply may quote the output of a program or of a tool, which enters no log: the
 * reply has it.
 */
export function loggedError(error: unknown, { end }: MessageOutcome): object {
  return end === 'answer' && isTemperError(error) ? { code: error.code, end } : { error, end };
}

function retryAfter(error: unknown): number {
  const retry = isTemperError(error) ? error.retry : 'backoff';
  return typeof retry === 'number' ? Math.min(retry, MAX_RETRY_MS) : RETRY_MS;
}
