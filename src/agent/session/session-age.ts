const DAY_MS = 24 * 3_600_000;

/** A session that was not used for this long is closed, with its history and its tools. */
export const SESSION_IDLE_MS = 30 * DAY_MS;

/** For this long a cluster refuses messages to a session that a user closed. */
export const CLOSED_SESSION_MS = 180 * DAY_MS;
