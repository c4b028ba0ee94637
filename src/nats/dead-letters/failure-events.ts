import { isSessionId } from '../../agent/session/session-id.ts';
import type { Envelope } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { token } from '../jetstream/names.ts';
import { publishEnd } from '../session-replies.ts';

/** The part of a dead letter that the event contains. */
interface FailedMessage {
  id: string;
  agentUid: string;
  code: ErrorCode;
  reason: string;
  message?: Envelope;
}

const HINTS = {
  failed: '; kubectl temper deadletters lists it, retries it or drops it',
  dropped: '',
} as const;

/**
 * Publishes to the session that a message will not be answered. Idempotent per stream sequence: repeated calls publish one `failed`
 * event. A message that was sent again has another sequence.
 */
export async function publishFailure(
  connection: JetStreamConnection,
  what: 'failed' | 'dropped',
  { id, agentUid, code, reason, message }: FailedMessage,
): Promise<void> {
  // Without a valid session there is no subject to publish to.
  if (message === undefined || !isSessionId(message.session)) return;
  // A peer has no kubectl for this namespace.
  const hint = message.source === 'Peer' ? '' : HINTS[what];
  const end = { kind: 'failed', message: message.id, code, text: `${reason}${hint}` } as const;
  await publishEnd(connection, agentUid, message.session, end, { id: `${what}:${token(agentUid)}:${id}` });
}
