import type { IncomingHttpHeaders } from 'node:http';
import { assertSessionId } from '../../agent/session/session-id.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { newSession } from '../users/messages.ts';

/** In a request and in the answer to `initialize`. */
export const SESSION_HEADER = 'mcp-session-id';

/** A session of the protocol is a session of the agent, which begins with its first message: nothing is stored for `initialize`. */
export function newProtocolSession({ uid }: AgentState, { ids }: Pick<GatewayDeps, 'ids'>): string {
  return newSession(`${uid}/${ids.next('mcp')}`);
}

/**
 * The session that the client got with the answer to `initialize`; undefined for a client that names none. Throws TEMPER_SESSION_INVALID,
 * and TEMPER_NOT_FOUND for a session that a user closed, by which the protocol has the client begin another one.
 */
export async function protocolSession(
  headers: IncomingHttpHeaders,
  { uid }: AgentState,
  { sessionsOf }: Pick<GatewayDeps, 'sessionsOf'>,
): Promise<string | undefined> {
  const session = headers[SESSION_HEADER];
  if (session === undefined) return undefined;
  const named = String(session);
  assertSessionId(named);
  if (await sessionsOf(uid).isClosed(named))
    throw new TemperError('TEMPER_NOT_FOUND', `a user closed session "${named}"; send initialize for another one`);
  return named;
}
