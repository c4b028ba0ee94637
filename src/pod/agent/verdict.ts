import type { Handled } from '../../agent/loop.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/escape.ts';

/** How the work on a message ends. */
export type Verdict =
  | { end: 'answer'; reply: string; ending: 'complete' | 'cut' | 'refusal' }
  | { end: 'retry'; afterMilliseconds: number; code: ErrorCode }
  | { end: 'reject'; code: ErrorCode; message: string }
  /** The message is another pod's: there is nothing to say of it. */
  | { end: 'lost' };

/** Nothing can be done with such a message, now or later. */
const POISON: ReadonlySet<ErrorCode> = new Set(['TEMPER_SESSION_INVALID', 'TEMPER_GATEWAY_ANSWER']);
/** The bounds of one message: what the model said so far is the answer. */
const BOUNDS: ReadonlySet<ErrorCode> = new Set(['TEMPER_TURN_LIMIT', 'TEMPER_STEP_LIMIT', 'TEMPER_LOOP_DETECTED']);
/** Another try may do better, here or in another pod; how often is bounded by whoever delivers. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_CANCELLED',
  'TEMPER_GATEWAY_UNAVAILABLE',
  'TEMPER_GATEWAY_UNTRUSTED',
  'TEMPER_GATEWAY_REFUSED',
  'TEMPER_INTERNAL',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_TIMEOUT',
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_STATE_CORRUPT',
]);
const RETRY_MILLISECONDS = 2_000;
const LONGEST_RETRY = 60_000;

export function verdictOf({ reply, ending }: Pick<Handled, 'reply' | 'ending'>): Verdict {
  return { end: 'answer', reply, ending };
}

/**
 * A failure that would be the same again is told to who asked, as the reply: a person must not wait for an answer that never comes.
 * What may pass is tried again. Only what can never be worked on goes to the dead letters.
 */
export function verdictOfFailure(error: unknown): Verdict {
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  const message = printable(messageOf(error, 1_000), 1_000);
  if (code === 'TEMPER_LEASE_LOST') return { end: 'lost' };
  if (POISON.has(code)) return { end: 'reject', code, message };
  if (PASSING.has(code)) return { end: 'retry', afterMilliseconds: retryAfter(error), code };
  const said = isTemperError(error) ? error.details['reply'] : undefined;
  if (BOUNDS.has(code) && typeof said === 'string' && said !== '') {
    return { end: 'answer', reply: `${said}\n\n[${code}: ${message}]`, ending: 'cut' };
  }
  return { end: 'answer', reply: `[${code}: ${message}]`, ending: 'refusal' };
}

function retryAfter(error: unknown): number {
  const retry = isTemperError(error) ? error.retry : 'backoff';
  return typeof retry === 'number' ? Math.min(retry, LONGEST_RETRY) : RETRY_MILLISECONDS;
}
