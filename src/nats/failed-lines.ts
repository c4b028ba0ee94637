import { isSessionId } from '../agent/session-id.ts';
import type { BuriedMessage } from './burial.ts';
import type { BusConnection } from './connection.ts';
import { subjects, token } from './names.ts';
import { publish } from './publish.ts';

const WHAT_TO_DO = {
  failed: '; kubectl temper deadletters lists it, retries it or drops it',
  dropped: '',
} as const;

/**
 * Tells whoever follows its session that a message will not be answered. Whatever says so about one place in an inbox, and how
 * often, it is one line; a message that was sent again has another place.
 */
export async function tellFailure(
  connection: BusConnection,
  what: 'failed' | 'dropped',
  { id, agentUid, code, reason, message }: BuriedMessage,
): Promise<void> {
  // Nobody can follow what has no session.
  if (message === undefined || !isSessionId(message.session)) return;
  const line = { kind: 'failed', message: message.id, code, text: `${reason}${WHAT_TO_DO[what]}` };
  await publish(connection, subjects.events(agentUid, message.session), line, {
    id: `${what}:${token(agentUid)}:${id}`,
  });
}
