import { TemperError } from '../../lib/errors.ts';
import { assertSessionId } from '../session/session-id.ts';

export const MAX_CHAIN_DEPTH = 5;

/** The depth of a message of this sender, whose own message has `depth`. Throws TEMPER_MESSAGE_DEPTH. */
export function nextDepth(sender: string, receiver: string, depth: number): number {
  const next = depth + 1;
  if (next <= MAX_CHAIN_DEPTH) return next;
  throw new TemperError(
    'TEMPER_MESSAGE_DEPTH',
    `a message from "${sender}" to "${receiver}" would be ${next} deep in its chain; ${MAX_CHAIN_DEPTH} is allowed`,
  );
}

/** An agent that waits for this chain cannot answer it: both would wait until the deadline. Throws TEMPER_MESSAGE_CYCLE. */
export function assertNoCycle(ancestors: readonly string[], receiverUid: string, to: string): void {
  if (!ancestors.includes(receiverUid)) return;
  throw new TemperError(
    'TEMPER_MESSAGE_CYCLE',
    `agent "${to}" is part of this chain of messages and may wait for your answer; put the question into your answer`,
  );
}

/**
 * The receiver's session for messages of this sender. Agents cannot write into sessions of users. Agent names contain no dot, so sessions
 * of two senders never collide.
 */
export function receiverSession(sender: string, session: string): string {
  const own = `${sender}.${session}`;
  assertSessionId(own);
  return own;
}
