import type { FireLimits } from './fires.ts';

/** What turns a matching event into a message. */
export interface Trigger {
  /** Unique for the agent, also among its subscriptions. */
  readonly key: string;
  readonly template: string;
  /** The session of all messages. Undefined: each has a session of its own. */
  readonly session: string | undefined;
  readonly limits: FireLimits;
}

export const DEFAULT_FIRES_PER_HOUR = 60;

/** The session of the message of a trigger for an event. */
export function sessionOf({ key, session }: Pick<Trigger, 'key' | 'session'>, event: string): string {
  return session ?? `trigger-${key}-${event.slice(-16)}`;
}
