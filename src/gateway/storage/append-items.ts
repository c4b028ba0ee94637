import type { SessionAppend } from '../../gateway-api/session-schemas.ts';
import type { NatsSessionStore } from '../../nats/sessions/port.ts';
import { storedMessage } from '../models/request.ts';

/**
 * Appends what a pod sends to the session of its message, only known members, once `admitted` resolves. Returns the number of items of the
 * session.
 */
export function appendItems(
  store: Pick<NatsSessionStore, 'append'>,
  session: string,
  { afterSeq, items, ...marks }: SessionAppend,
  admitted?: Promise<void>,
): Promise<number> {
  const flags = {
    ...(marks.tainted === true ? { tainted: true } : {}),
    ...(marks.private === true ? { private: true } : {}),
  };
  return store.append(session, afterSeq, items.map(storedMessage), flags, admitted);
}
