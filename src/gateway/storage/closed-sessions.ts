import { TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';

/** Throws TEMPER_SESSION_CLOSED. A message that is stored while the session is being closed becomes a dead letter. */
export async function assertNotClosed(
  { uid }: AgentState,
  session: string,
  { sessionsOf }: Pick<GatewayDeps, 'sessionsOf'>,
): Promise<void> {
  if (!(await sessionsOf(uid).isClosed(session))) return;
  throw new TemperError(
    'TEMPER_SESSION_CLOSED',
    `a user closed session "${session}"; send the message in a new session`,
  );
}
