import { parseDuration } from '../../api/quantities.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A session that was not used for this long is closed, with its history and its tools, unless its agent says otherwise. */
export const SESSION_IDLE_MS = 30 * DAY_MS;

/** The shortest time after which an agent may have its idle sessions closed: gateways look once an hour. */
export const MIN_SESSION_IDLE_MS = HOUR_MS;

/** For this long a cluster refuses messages to a session that a user closed. */
export const CLOSED_SESSION_MS = 180 * DAY_MS;

/** For this long a state folder refuses messages to a session that a user closed, however soon idle sessions are closed. */
export const CLOSED_LOCAL_SESSION_MS = 30 * DAY_MS;

/** When idle sessions of the agent are closed. An unusable value, which `temper validate` refuses, closes no session early. Never throws. */
export function sessionIdleMs({ idle }: Pick<AgentSpec, 'idle'>): number {
  const { closeSessionsAfter } = idle ?? {};
  if (closeSessionsAfter === undefined) return SESSION_IDLE_MS;
  try {
    return Math.max(MIN_SESSION_IDLE_MS, parseDuration(closeSessionsAfter));
  } catch {
    return SESSION_IDLE_MS;
  }
}
